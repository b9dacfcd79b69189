// Two models on one track: over each piece a strip of the numbers that stand for it, empty until they are computed.
// data, beside that of a player: {runners: [{title, last, states: [{piece, side, numbers, ticks, reads}]}], words}

class Race extends Player {
  compose() {
    this.lanes = this.data.runners.map((runner) => this.lane(runner));
    return this.lanes.map((lane) => lane.section);
  }

  lane({title, states}) {
    const columns = states.map(({piece, side, numbers}) => {
      const cells = numbers.map(() => node('span', 'number')), strip = node('div', 'strip', ...cells);
      const name = node('span', side, piece);
      return {box: node('div', `state ${side}`, strip, name), cells, strip};
    });
    for (const side of ['source', 'target']) {  // a gap between the sentences
      const first = states.findIndex((state) => state.side === side);
      if (first > 0) columns[first].box.classList.add('first');
    }
    const count = node('span', 'quiet');
    const track = node('div', 'track scroll', ...columns.map((column) => column.box));
    return {section: node('section', 'lane', node('h4', '', title, ' ', count), track), columns, count, track};
  }

  paint(at) {
    const tick = at + 1, {words, palette} = this.data, [low, middle, high] = [0, 0.5, 1].map((place) => mixed(palette.signed, place));
    this.data.runners.forEach(({states, last}, index) => {
      const {columns, count, track} = this.lanes[index];
      count.textContent = tick >= last ? '✓' : '';
      // The step that writes at this tick looks at the source.
      const now = states.find((state) => state.side === 'target' && state.reads && state.ticks[0] === tick);
      let source = 0;
      states.forEach((state, place) => {
        const {box, cells, strip} = columns[place];
        state.numbers.forEach((value, i) => {
          const there = state.ticks[i] <= tick, ends = value < 0 ? low : high, part = Math.abs(value);
          cells[i].style.background = there ? `rgb(${middle.map((from, c) => Math.round(from + (ends[c] - from) * part))})` : '';
          cells[i].classList.toggle('waits', !there);
        });
        const all = Math.max(...state.ticks);
        box.classList.toggle('new', state.ticks.includes(tick));
        box.title = all <= tick ? words.there.replace('{tick}', all) : words.waits;
        if (state.side === 'source') {
          const weight = now ? now.reads[source] : 0;
          strip.style.boxShadow = weight > 0.02 ? `0 0 0 ${Math.max(1, 7 * weight).toFixed(1)}px ${palette.accent}` : '';
          if (weight > 0.02) box.title += `; ${words.reads.replace('{key}', state.piece).replace('{weight}', percent(weight))}`;
          source += 1;
        }
      });
      const newest = columns.filter((_column, place) => states[place].ticks.includes(tick)).pop();
      if (newest) track.scrollLeft = newest.box.offsetLeft + newest.box.offsetWidth - track.clientWidth + 40;
    });
  }
}

export default (component) => run(Race, component);
