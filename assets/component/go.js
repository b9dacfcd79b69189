// Links to places in the app. A click writes one history entry and tells Python the place; the link itself is a
// real address, so that it can be opened in a new tab.
// data: [{label, note, params: {name: value}, current}]

export default function ({parentElement, data, setTriggerValue}) {
  const list = document.createElement('ul');
  list.className = 'go';
  for (const place of data) {
    const url = new URL(location.href);
    for (const [name, value] of Object.entries(place.params)) url.searchParams.set(name, value);
    for (const name of place.drop) url.searchParams.delete(name);
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
    const note = document.createElement('div');
    note.className = 'quiet';
    note.textContent = place.note;
    const item = document.createElement('li');
    item.append(link, note);
    list.append(item);
  }
  parentElement.querySelector('.root').replaceChildren(list);
}
