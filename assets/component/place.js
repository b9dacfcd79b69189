// A link to a place in the app, a real address that can be opened in a new tab. A click is one step of the browser's
// history: Streamlit is told as it is told of Back, and reads all its controls from the address again. Setting the
// controls from Python instead would leave one entry in the history for each of them.
// place: {label, note, address: {name: value, or null for what is left out}, current, page}; without an address, the page
// as a reader first finds it; `page` is another one of the app

function link(place) {
  const url = new URL(location.href);
  if (typeof place.page === 'string') url.pathname = url.pathname.replace(/[^/]*$/, place.page);
  if (!place.address) url.search = '';
  for (const [name, value] of Object.entries(place.address ?? {})) {
    if (value === null) url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  const anchor = document.createElement('a');
  anchor.href = url.href;
  anchor.textContent = place.label;
  if (place.current) anchor.setAttribute('aria-current', 'true');
  anchor.onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState({}, '', url);
    window.dispatchEvent(new PopStateEvent('popstate'));
    anchor.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true, composed: true}));  // shuts a popover
  };
  const both = [anchor];
  if (place.note) {
    const note = document.createElement('div');
    note.className = 'quiet';
    note.textContent = place.note;
    both.push(note);
  }
  return both;
}
