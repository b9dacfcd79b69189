// Figure 1 of the paper, small: where the reader is, and the attentions to choose from. A model with one side has that
// half of it; a recurrent one has states in a row, read there and back on the left, written on the right.
// data: {kind, layer, layers, kinds, shape, colours: {source, target}, words: {encoder, decoder, cross, feed, source,
// target, next, positions, layer, title, reads, writes, vector}}

const SVG = 'http://www.w3.org/2000/svg';

function make(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const WIDE = 112;  // of every box
const LEFT = 8, RIGHT = 144, MIDDLE = 76;  // left edges of the columns of boxes

export default function ({parentElement, data, setTriggerValue}) {
  const {words, kinds, shape} = data, recurrent = shape === 'encoder-decoder' && !kinds.includes('encoder');
  const svg = make('svg', {class: 'map', viewBox: recurrent ? '0 96 264 324' : '0 0 264 420', role: 'group', 'aria-label': words.title});
  const defs = make('defs', {});
  const marker = make('marker', {id: 'head', viewBox: '0 0 6 6', refX: 5, refY: 3, markerWidth: 5, markerHeight: 5, orient: 'auto'});
  marker.append(make('path', {d: 'M0 0 L6 3 L0 6 Z'}));
  defs.append(marker);
  svg.append(defs);

  const box = (x, y, text) => {
    svg.append(make('rect', {class: 'plain', x, y, width: WIDE, height: 26, rx: 4}));
    svg.append(make('text', {x: x + WIDE / 2, y: y + 18}, text));
  };
  const arrow = (d, head = true) => svg.append(make('path', head ? {d, 'marker-end': 'url(#head)'} : {d}));
  const note = (x, y, text, small = true) => svg.append(make('text', {...(small && {class: 'small'}), x, y}, text));
  const named = (x, y, text, colour) => svg.append(make('text', {x, y, style: `fill: ${colour}`}, text));

  // Three arrows into an attention box, each with its name: their order in the paper's figure misleads.
  const inputs = (x, below) => {
    ['Q', 'K', 'V'].forEach((name, i) => {
      const at = x + 24 + 32 * i;
      arrow(`M${at} ${below + 24} V${below + 1}`);
      note(at + 10, below + 18, name);
    });
    arrow(`M${x + 24} ${below + 24} H${x + 88}`, false);
  };

  const attention = (kind, x, y) => {
    const group = make('g', {class: 'kind', role: 'button', tabindex: 0, 'aria-pressed': String(kind === data.kind), 'data-kind': kind});
    group.append(make('rect', {x, y, width: WIDE, height: 44, rx: 4}));
    words[kind].forEach((line, i) => group.append(make('text', {x: x + WIDE / 2, y: y + 19 + 17 * i}, line)));
    const choose = () => setTriggerValue('kind', kind);
    group.onclick = choose;
    group.onkeydown = (event) => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); }
    };
    svg.append(group);
  };

  // A stack of self-attention and feed-forward; `top` is the upper edge of its feed-forward box.
  const stack = (kind, x, top, name, colour) => {
    svg.append(make('rect', {class: 'stack', x: x - 8, y: top - 28, width: WIDE + 16, height: 376 - top, rx: 8}));
    attention(kind, x, 258);
    inputs(x, 302);
    box(x, top, words.feed);
    arrow(`M${x + 56} 362 V326`, false);
    note(x + 56, 378, words.positions);
    named(x + 56, 404, name, colour);
  };

  // One bar a layer beside the stack that holds the chosen attention; the current one is lit.
  const layers = (x, top) => {
    const tall = 340 - top, each = tall / data.layers;
    for (let layer = 0; layer < data.layers; layer += 1) {
      svg.append(make('rect', {
        class: layer === data.layer ? 'layer lit' : 'layer',
        x: x - 6, y: top + tall - (layer + 1) * each + 1, width: 4, height: each - 2, rx: 2,
      }));
    }
    svg.append(make('rect', {class: 'gap', x: x + 12, y: top - 1, width: 88, height: 17}));
    note(x + 56, top + 12, words.layer);
  };

  const whole = () => {
    stack('encoder', LEFT, 196, words.source, data.colours.source);
    stack('decoder', RIGHT, 76, words.target, data.colours.target);
    arrow(`M${LEFT + 56} 258 V223`);
    attention('cross', RIGHT, 138);
    arrow(`M${RIGHT + 56} 138 V103`);
    arrow(`M${RIGHT + 56} 76 V30`);
    // Into the cross-attention: queries from the decoder below, keys and values from the encoder's last layer.
    arrow(`M${RIGHT + 92} 258 V183`);
    note(RIGHT + 102, 200, 'Q');
    arrow(`M${LEFT + 56} 196 V146 H126 V218 H${RIGHT + 52} V183`);
    arrow(`M${RIGHT + 20} 218 V183`);
    note(RIGHT + 30, 200, 'K');
    note(RIGHT + 62, 200, 'V');
    named(RIGHT + 56, 20, words.next, data.colours.target);
    if (data.kind === 'encoder') layers(LEFT, 174);
    else layers(RIGHT, 50);
  };

  const half = (kind) => {
    const colour = kind === 'encoder' ? data.colours.source : data.colours.target;
    stack(kind, MIDDLE, 196, kind === 'encoder' ? words.source : words.target, colour);
    arrow(`M${MIDDLE + 56} 258 V223`);
    if (words.next) arrow(`M${MIDDLE + 56} 196 V150`);
    named(MIDDLE + 56, 138, words.next, colour);
    layers(MIDDLE, 174);
  };

  const chain = (x, y, back) => {
    for (let i = 0; i < 4; i += 1) {
      const at = x + 12 + 29 * i;
      svg.append(make('circle', {class: 'plain', cx: at, cy: y, r: 8}));
      if (i) arrow(`M${at - 20} ${y - (back ? 3 : 0)} H${at - 9}`);
      if (i && back) arrow(`M${at - 9} ${y + 3} H${at - 20}`);
    }
  };

  const states = () => {
    chain(LEFT, 300, true);
    chain(RIGHT, 220, false);
    note(LEFT + 56, 330, words.reads);
    note(RIGHT + 56, 250, words.writes);
    arrow(`M${LEFT + 56} 378 V340`);
    arrow(`M${RIGHT + 56} 378 V260`);
    if (kinds.includes('cross')) {
      attention('cross', RIGHT, 138);
      arrow(`M${RIGHT + 92} 211 V183`);
      note(RIGHT + 102, 200, 'Q');
      arrow(`M${LEFT + 56} 290 V160 H${RIGHT - 1}`);
      note(LEFT + 82, 152, 'K = V');
      arrow(`M${RIGHT + 56} 138 V124`);
    } else {
      arrow(`M${LEFT + 107} 292 V220 H${RIGHT + 2}`);
      note(LEFT + 62, 212, words.vector);
      arrow(`M${RIGHT + 56} 211 V124`);
    }
    named(LEFT + 56, 396, words.source, data.colours.source);
    named(RIGHT + 56, 396, words.target, data.colours.target);
    named(RIGHT + 56, 114, words.next, data.colours.target);
  };

  if (recurrent) states();
  else if (kinds.length === 3) whole();
  else for (const kind of kinds.slice(0, 1)) half(kind);
  parentElement.querySelector('.root').replaceChildren(svg);
}
