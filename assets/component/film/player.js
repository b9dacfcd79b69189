// Steps that a reader goes through, or lets run: buttons, slider, arrow keys. All steps are there from the start;
// Python is told of the place when the reader rests.
// data: {name, step, told, param, values, labels, bar: [text], palette, words}. Steps count from 1; `values` are what
// the address says for each of them, the first being what it leaves out.

const REST = 300;  // ms without a step until Python is told
const BEAT = 1100;  // ms a step stays while playing

const node = (tag, name, ...inside) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  made.append(...inside);
  return made;
};

// The colour of a weight from 0 to 1 on the one scale: red, green and blue.
function mixed(stops, weight) {
  const at = Math.min(Math.max(weight, 0), 1), next = Math.max(1, stops.findIndex(([place]) => place >= at));
  const [[a, from], [b, to]] = [stops[next - 1], stops[next]], part = (at - a) / (b - a);
  return [1, 3, 5].map((i) => Math.round(parseInt(from.slice(i, i + 2), 16) * (1 - part) + parseInt(to.slice(i, i + 2), 16) * part));
}

function tint(cell, stops, weight) {
  const [r, g, b] = mixed(stops, weight);
  cell.style.background = `rgb(${r}, ${g}, ${b})`;
  cell.style.color = 0.299 * r + 0.587 * g + 0.114 * b > 140 ? '#000' : '#fff';
}

const number = (weight) => (weight > 0 && weight < 0.0001 ? '< 0.0001' : weight.toFixed(4));
const percent = (share) => (share > 0 && share < 0.001 ? '< 0.1 %' : `${(100 * share).toFixed(share < 0.1 && share > 0 ? 1 : 0)} %`);

class Player {
  constructor(root) {
    this.root = root;
    this.seq = 0;
    this.step = 1;
  }

  show(data, tell) {
    const fresh = !this.data || data.name !== this.data.name || JSON.stringify(data.palette) !== JSON.stringify(this.data.palette);
    this.data = data;
    this.tell = tell;
    if (fresh) this.build();
    if (data.told >= this.seq || fresh) {  // else an echo: a newer step was made here
      this.seq = Math.max(this.seq, data.told);
      this.step = data.step;
    }
    this.draw();
  }

  build() {
    const {data} = this, {words, palette} = data;
    this.pause();
    this.film = node('div', 'film');
    this.film.tabIndex = 0;
    this.film.setAttribute('role', 'group');
    this.film.setAttribute('aria-label', words.label);
    for (const [name, colour] of [['--accent', palette.accent], ['--source', palette.source], ['--target', palette.target],
      ['--quiet', palette.quiet], ['--bar', palette.weights[2][1]], ['--blocked', palette.blocked], ['--hatch', palette.hatch]]) {
      this.film.style.setProperty(name, colour);
    }
    const button = (text, title, press) => {
      const made = node('button', '', text);
      made.title = title;
      made.onclick = press;
      return made;
    };
    this.back = button('‹', words.back, () => this.go(this.step - 1));
    this.forward = button('›', words.forward, () => this.go(this.step + 1));
    this.playing = button(words.play, words.playTitle, () => (this.timer ? this.pause() : this.play()));
    this.slider = node('input');
    Object.assign(this.slider, {type: 'range', min: 1, max: data.values.length});
    this.slider.setAttribute('aria-label', words.step);
    this.slider.oninput = () => this.go(Number(this.slider.value));
    this.count = node('span', 'count');
    this.film.append(node('div', 'bar', this.back, this.playing, this.forward, this.slider, this.count), ...this.compose());
    this.film.onkeydown = (event) => this.key(event);
    for (const type of ['keyup', 'keypress']) this.film.addEventListener(type, (event) => event.stopPropagation());
    this.root.replaceChildren(this.film);
  }

  draw() {
    const {data} = this, at = this.step - 1;
    this.back.disabled = this.step <= 1;
    this.forward.disabled = this.step >= data.values.length;
    this.slider.value = this.step;
    this.slider.setAttribute('aria-valuetext', data.labels[at]);
    this.count.textContent = data.bar[at];
    this.paint(at);
  }

  go(step) {
    const to = Math.min(Math.max(1, step), this.data.values.length);
    if (to === this.step) return;
    this.step = to;
    this.seq += 1;
    this.draw();
    clearTimeout(this.rest);
    if (!this.timer) this.rest = setTimeout(() => this.send(), REST);
  }

  // The address keeps its order: then Streamlit, which finds its control there, adds nothing to the history.
  send() {
    const url = new URL(location.href), {param, values} = this.data;
    if (this.step === 1) url.searchParams.delete(param);
    else url.searchParams.set(param, values[this.step - 1]);
    history.replaceState(history.state, '', url);
    this.tell('at', {step: this.step, seq: this.seq});
  }

  play() {
    const last = this.data.values.length, on = () => (this.step < last ? this.go(this.step + 1) : this.pause());
    this.timer = setInterval(on, BEAT);
    this.playing.textContent = this.data.words.pause;
    if (this.step === last) this.go(1);
    else on();
  }

  pause(told = true) {
    if (!this.timer) return;
    clearInterval(this.timer);
    this.timer = null;
    this.playing.textContent = this.data.words.play;
    if (told) this.send();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.stopPropagation();
    const moves = {ArrowLeft: -1, ArrowUp: -1, PageUp: -1, ArrowRight: 1, ArrowDown: 1, PageDown: 1};
    const ends = {Home: 1, End: this.data.values.length};
    if (event.key in moves) this.go(this.step + moves[event.key]);
    else if (event.key in ends) this.go(ends[event.key]);
    else if (event.key === ' ' && event.target.tagName !== 'BUTTON') this.timer ? this.pause() : this.play();
    else return;
    event.preventDefault();
  }

  leave() {
    setTimeout(() => {
      if (this.root.isConnected) return;
      this.pause(false);
      clearTimeout(this.rest);
    });
  }
}

// What Streamlit calls: one player of a sort for each place on the page.
const players = new WeakMap();

function run(sort, {parentElement, data, setStateValue}) {
  const root = parentElement.querySelector('.root');
  if (!players.has(root)) players.set(root, new sort(root));
  const player = players.get(root);
  player.show(data, setStateValue);
  return () => player.leave();
}
