// Copies the browser's own address. On plain http a browser refuses the clipboard: then the link is shown, selected.
// data: {copy, copied, label}

export default function ({parentElement, data}) {
  const line = document.createElement('div');
  line.className = 'link';
  const button = document.createElement('button');
  button.textContent = data.copy;
  line.append(button);
  let timer;
  button.onclick = async () => {
    line.querySelector('input')?.remove();
    try {
      await navigator.clipboard.writeText(location.href);
      button.textContent = data.copied;
      clearTimeout(timer);
      timer = setTimeout(() => { button.textContent = data.copy; }, 2000);
    } catch {
      const shown = document.createElement('input');
      shown.readOnly = true;
      shown.value = location.href;
      shown.setAttribute('aria-label', data.label);
      line.append(shown);
      shown.focus();
      shown.select();
    }
  };
  parentElement.querySelector('.root').replaceChildren(line);
  return () => clearTimeout(timer);
}
