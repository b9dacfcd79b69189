// A file of its own: the stage with its maps, without a server. The scripts of the stage stand in front of this one.
// data (JSON in the document): {payload: base64, palettes: {light, dark}, theme: 'light' | 'dark' | '', words, labels, place, values}

const given = JSON.parse(document.getElementById('data').textContent);
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// The place that the address asks for, where it asks for one that there is.
function asked(kinds) {
  const params = new URLSearchParams(location.search), place = {...given.place};
  const text = (name, fits) => { const value = params.get(name); if (value !== null && fits(value)) place[name] = value; };
  text('kind', (value) => Object.hasOwn(kinds, value));
  text('drawing', (value) => VIEWS.includes(value));
  text('also', (value) => /^(\d{1,3}(,\d{1,3})*)?$/.test(value));
  for (const name of ['layer', 'head', 'row', 'column', 'faint']) {
    if (/^\d{1,4}$/.test(params.get(name) ?? '')) place[name] = Number(params.get(name));
  }
  for (const name of ['mean', 'hall']) if (params.has(name)) place[name] = params.get(name) === 'true';
  return place;
}

class Page extends Stage {
  // The address keeps the place, so that reloading finds it again; nobody else is told.
  tell() {
    clearTimeout(this.timer);
    this.timer = null;
    this.write();
    this.unsaid.clear();
  }

  write() {
    try { super.write(); } catch { /* some browsers keep the address of a file as it is */ }
  }

  controls() {
    super.controls();
    this.choices ??= this.chosen();
    for (const choice of this.choices) choice();
  }

  // Kind, layer and head to choose from; gives what brings each up to date.
  chosen() {
    const {labels} = given, nav = document.getElementById('choices'), held = (at, count) => Math.min(Math.max(0, at), count - 1);
    const kinds = make('span', 'kinds'), of = () => this.maps.kinds[this.place.kind];
    kinds.setAttribute('role', 'radiogroup');
    kinds.setAttribute('aria-label', labels.kind);
    const buttons = Object.keys(this.maps.kinds).map((kind) => {
      const node = make('button', '', this.words.kinds[kind]);
      node.type = 'button';
      node.setAttribute('role', 'radio');
      node.addEventListener('click', () => {
        const {layers, heads} = this.maps.kinds[kind], {layer, head} = this.place;
        this.step({kind, layer: held(layer, layers), head: held(head, heads), column: -1});
      });
      return [kind, node];
    });
    kinds.append(...buttons.map(([, node]) => node));
    nav.append(kinds);
    const stepped = (name, go) => {
      const group = make('span', name), label = make('label', '', labels[name] + ' '), select = make('select');
      const arrow = (text, by, said) => {
        const node = make('button', '', text);
        Object.assign(node, {type: 'button', title: said});
        node.setAttribute('aria-label', said);
        node.addEventListener('click', () => go(by));
        return node;
      };
      const [back, on] = [arrow('‹', -1, labels[`${name}Back`]), arrow('›', 1, labels[`${name}On`])];
      select.addEventListener('change', () => this.step({[name]: Number(select.value) - 1, ...(name === 'head' ? {mean: false} : {})}));
      label.append(select);
      group.append(label, back, on);
      nav.append(group);
      return () => {
        const count = of()[`${name}s`];
        if (select.length !== count) select.replaceChildren(...Array.from({length: count}, (_, i) => new Option(i + 1, i + 1)));
        select.value = this.place[name] + 1;
        back.disabled = this.place[name] === 0;
        on.disabled = this.place[name] === count - 1;
      };
    };
    const layer = stepped('layer', (by) => this.go(by, 0)), head = stepped('head', (by) => this.go(0, by));
    const mean = make('button', 'mean', labels.mean);
    mean.type = 'button';
    mean.addEventListener('click', () => this.step({mean: !this.place.mean}));
    nav.append(mean);
    return [
      () => buttons.forEach(([kind, node]) => node.setAttribute('aria-checked', String(kind === this.place.kind))),
      layer, head,
      () => mean.setAttribute('aria-pressed', String(this.place.mean)),
    ];
  }
}

unpack(bytesOf(given.payload)).then((payload) => {
  headlight.maps.set(payload.name, new Maps(payload));
  const at = document.querySelector('.root'), stage = at.stage = new Page(at), dark = matchMedia('(prefers-color-scheme: dark)');
  const other = make('button', 'theme'), root = document.documentElement;
  let theme = given.theme, place = asked(payload.kinds);
  const show = () => {
    const name = theme || (dark.matches ? 'dark' : 'light'), palette = given.palettes[name], {style} = root;
    style.colorScheme = name;
    style.setProperty('--st-text-color', palette.text);
    style.setProperty('--st-background-color', palette.ground);
    style.setProperty('--st-border-color', palette.hatch);
    other.textContent = given.labels[name === 'dark' ? 'light' : 'dark'];
    if (stage.place) place = stage.outside();
    stage.show({maps: payload.name, place, usual: given.place, values: given.values, palette, words: given.words}, () => {});
  };
  other.type = 'button';
  other.addEventListener('click', () => { theme = root.style.colorScheme === 'dark' ? 'light' : 'dark'; show(); });
  dark.addEventListener('change', show);
  // Keys work wherever nothing else has them.
  document.addEventListener('keydown', (event) => {
    if (event.target === document.body && event.key !== 'h') stage.key(event);
  });
  show();
  document.getElementById('choices').append(other);
});
