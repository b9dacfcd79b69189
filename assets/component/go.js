// Links to places in the app, real addresses that can be opened in a new tab. A click writes the address itself, as
// Streamlit will, and tells Python the place: one entry in the history, where bound controls would write one each.
// data: [{label, note, params: {name: value}, address: {name: value or null}, current}]

export default function ({parentElement, data, setTriggerValue}) {
  const list = document.createElement('ul');
  list.className = 'go';
  for (const place of data) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(place.address)) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    const link = document.createElement('a');
    link.href = url.href;
    link.textContent = place.label;
    if (place.current) link.setAttribute('aria-current', 'true');
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.pushState({}, '', url);
      setTriggerValue('place', place.params);
    };
    const item = document.createElement('li');
    item.append(link);
    if (place.note) {
      const note = document.createElement('div');
      note.className = 'quiet';
      note.textContent = place.note;
      item.append(note);
    }
    list.append(item);
  }
  parentElement.querySelector('.root').replaceChildren(list);
}
