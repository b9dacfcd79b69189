// The translation, piece by piece; each tells its probability on hover, focus or touch.
// data: {pieces: [{text, space, said}], whole, colour, label}

export default function ({parentElement, data}) {
  const line = document.createElement('div');
  line.className = 'translation';
  line.style.setProperty('--target', data.colour);
  const pieces = document.createElement('div');
  pieces.className = 'pieces';
  pieces.setAttribute('role', 'group');
  pieces.setAttribute('aria-label', data.label);
  for (const piece of data.pieces) {
    if (piece.space) pieces.append(' ');
    const node = document.createElement('button');
    node.className = 'piece';
    node.append(piece.text);
    const said = document.createElement('span');
    said.textContent = piece.said;
    node.append(said);
    pieces.append(node);
  }
  const whole = document.createElement('div');
  whole.className = 'quiet';
  whole.textContent = data.whole;
  line.append(pieces, whole);
  parentElement.querySelector('.root').replaceChildren(line);
}
