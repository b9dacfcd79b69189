// What came out, piece by piece; each tells its probability on hover, focus or touch. `h` covers what the pointer or
// the focus is on, the sentence or its probability, until it is pressed again: so a lecturer can ask before she shows.
// A piece with a place can be pressed, to hide it from the model or to show it again.
// data: {pieces: [{text, space, said, quiet, gap, place}], whole, colour, label, covered}

export default function ({parentElement, data, setTriggerValue}) {
  const line = document.createElement('div');
  line.className = 'translation';
  line.style.setProperty('--target', data.colour);
  const pieces = document.createElement('div');
  pieces.className = 'pieces';
  pieces.setAttribute('role', 'group');
  pieces.setAttribute('aria-label', data.label);
  let word;  // its pieces stay on one line, a full stop with the word before it
  for (const piece of data.pieces) {
    if (piece.space) pieces.append(' ');
    if (piece.space || !word) {
      word = document.createElement('span');
      word.className = 'word';
      pieces.append(word);
    }
    const node = document.createElement('button');
    node.className = ['piece', piece.quiet && 'given', piece.gap && 'hole'].filter(Boolean).join(' ');
    if (piece.place !== undefined) {
      node.setAttribute('aria-pressed', String(piece.gap));
      node.onclick = () => setTriggerValue('piece', piece.place);
    }
    node.append(piece.text);
    const said = document.createElement('span');
    said.textContent = piece.said;
    node.append(said);
    word.append(node);
  }
  const whole = document.createElement('div');
  whole.className = 'quiet';
  whole.textContent = data.whole;
  line.append(pieces, whole);
  for (const part of [pieces, whole]) part.dataset.covered = data.covered;
  const root = parentElement.querySelector('.root'), hidden = root.querySelectorAll('.covered').length > 0;
  if (hidden) for (const part of [pieces, whole]) part.classList.add('covered');  // a new sentence is not given away
  root.replaceChildren(line);
  const cover = (event) => {
    const typing = event.composedPath()[0].closest?.('input, textarea, [contenteditable]');
    if (event.key !== 'h' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const part = [pieces, whole].find((part) => part.matches(':hover') || part.matches(':focus-within'));
    if (part) part.classList.toggle('covered');
  };
  document.addEventListener('keydown', cover);
  return () => document.removeEventListener('keydown', cover);
}
