// Figure 1 of the paper, small: where the reader is, and the three attentions to choose from.
// data: {kind, layer, layers, words: {encoder, decoder, cross, feed, source, target, next, positions, layer, title}}

const SVG = 'http://www.w3.org/2000/svg';

function make(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const WIDE = 112;  // of every box
const LEFT = 8, RIGHT = 144;  // left edges of the two columns of boxes

function box(svg, x, y, text) {
  svg.append(make('rect', {class: 'plain', x, y, width: WIDE, height: 26, rx: 4}));
  svg.append(make('text', {x: x + WIDE / 2, y: y + 18}, text));
}

function arrow(svg, d, head = true) {
  svg.append(make('path', head ? {d, 'marker-end': 'url(#head)'} : {d}));
}

// Three arrows into an attention box, each with its name: their order in the paper's figure misleads.
function inputs(svg, x, below) {
  ['Q', 'K', 'V'].forEach((name, i) => {
    const at = x + 24 + 32 * i;
    arrow(svg, `M${at} ${below + 24} V${below + 1}`);
    svg.append(make('text', {class: 'small', x: at + 10, y: below + 18}, name));
  });
  arrow(svg, `M${x + 24} ${below + 24} H${x + 88}`, false);
}

export default function ({parentElement, data, setTriggerValue}) {
  const words = data.words;
  const svg = make('svg', {class: 'map', viewBox: '0 0 264 420', role: 'group', 'aria-label': words.title});
  const defs = make('defs', {});
  const marker = make('marker', {id: 'head', viewBox: '0 0 6 6', refX: 5, refY: 3, markerWidth: 5, markerHeight: 5, orient: 'auto'});
  marker.append(make('path', {d: 'M0 0 L6 3 L0 6 Z'}));
  defs.append(marker);
  svg.append(defs);

  svg.append(make('rect', {class: 'stack', x: LEFT - 8, y: 168, width: WIDE + 16, height: 180, rx: 8}));
  svg.append(make('rect', {class: 'stack', x: RIGHT - 8, y: 44, width: WIDE + 16, height: 304, rx: 8}));

  const kinds = {encoder: [LEFT, 258], decoder: [RIGHT, 258], cross: [RIGHT, 138]};
  for (const [kind, [x, y]] of Object.entries(kinds)) {
    const group = make('g', {class: 'kind', role: 'button', tabindex: 0, 'aria-pressed': String(kind === data.kind), 'data-kind': kind});
    group.append(make('rect', {x, y, width: WIDE, height: 44, rx: 4}));
    words[kind].forEach((line, i) => group.append(make('text', {x: x + WIDE / 2, y: y + 19 + 17 * i}, line)));
    const choose = () => setTriggerValue('kind', kind);
    group.onclick = choose;
    group.onkeydown = (event) => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(); }
    };
    svg.append(group);
  }
  inputs(svg, LEFT, 302);
  inputs(svg, RIGHT, 302);
  box(svg, LEFT, 196, words.feed);
  box(svg, RIGHT, 76, words.feed);
  arrow(svg, `M${LEFT + 56} 258 V223`);
  arrow(svg, `M${RIGHT + 56} 138 V103`);
  arrow(svg, `M${RIGHT + 56} 76 V30`);
  // Into the cross-attention: queries from the decoder below, keys and values from the encoder's last layer.
  arrow(svg, `M${RIGHT + 92} 258 V183`);
  svg.append(make('text', {class: 'small', x: RIGHT + 102, y: 200}, 'Q'));
  arrow(svg, `M${LEFT + 56} 196 V146 H126 V218 H${RIGHT + 52} V183`);
  arrow(svg, `M${RIGHT + 20} 218 V183`);
  svg.append(make('text', {class: 'small', x: RIGHT + 30, y: 200}, 'K'));
  svg.append(make('text', {class: 'small', x: RIGHT + 62, y: 200}, 'V'));
  for (const x of [LEFT, RIGHT]) {
    arrow(svg, `M${x + 56} 362 V326`, false);
    svg.append(make('text', {class: 'small', x: x + 56, y: 378}, words.positions));
  }
  svg.append(make('text', {x: LEFT + 56, y: 404, style: 'fill: ' + data.colours.source}, words.source));
  svg.append(make('text', {x: RIGHT + 56, y: 404, style: 'fill: ' + data.colours.target}, words.target));
  svg.append(make('text', {x: RIGHT + 56, y: 20, style: 'fill: ' + data.colours.target}, words.next));

  // One bar a layer beside the stack that holds the chosen attention; the current one is lit.
  const inEncoder = data.kind === 'encoder';
  const [x, top, tall] = inEncoder ? [LEFT - 6, 174, 168] : [RIGHT - 6, 50, 292];
  for (let layer = 0; layer < data.layers; layer += 1) {
    const each = tall / data.layers;
    svg.append(make('rect', {
      class: layer === data.layer ? 'layer lit' : 'layer',
      x, y: top + tall - (layer + 1) * each + 1, width: 4, height: each - 2, rx: 2,
    }));
  }
  svg.append(make('rect', {class: 'gap', x: (inEncoder ? LEFT : RIGHT) + 12, y: inEncoder ? 175 : 51, width: 88, height: 17}));
  svg.append(make('text', {class: 'small', x: (inEncoder ? LEFT : RIGHT) + 56, y: inEncoder ? 188 : 64}, words.layer));
  parentElement.querySelector('.root').replaceChildren(svg);
}
