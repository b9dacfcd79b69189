// A translation that grows piece by piece: what the decoder has read, the rows of attention that are new, and what
// may come next.
// data, beside that of a player: {goes, comes, maps: [{title, keys, side, rows, group, labels}], next: [[{piece, share,
// drawn, chosen, end, never}]], aloud: [text]}

const LONG = 14;  // steps; of more, the maps show a part that follows the newest row

class Film extends Player {
  compose() {
    const {data} = this, {words} = data, long = data.goes.length > LONG;
    this.film.classList.toggle('long', long);
    this.said = node('p', 'aloud');
    this.said.setAttribute('aria-live', 'polite');
    this.tokens = data.goes.map((piece) => node('span', 'token', piece));
    this.came = node('span', 'came');
    const line = node('p', 'line', node('span', 'quiet', words.reads), ...this.tokens, node('span', 'quiet', '→'), this.came);
    this.maps = data.maps.map((map) => this.map(map));
    if (long) for (const {scroll} of this.maps) scroll.tabIndex = 0;  // so that keys can scroll it
    this.next = node('ol', 'next');
    const following = node('section', 'following', node('h4', '', words.next), this.next);
    return [line, this.said, node('div', 'parts', ...this.maps.map((map) => map.section), following)];
  }

  // A map as a table. Its rows are there from the start, so that nothing moves, and are shown when they are decoded.
  map({title, keys, side, rows, group, labels}) {
    const {palette} = this.data, table = node('table', 'map'), head = node('tr', '', node('td'));
    const heads = keys.map((key) => {
      const cell = node('th', side, node('span', '', key));
      cell.scope = 'col';
      return cell;
    });
    head.append(...heads);
    const bodies = rows.map((row, t) => {
      const name = node('th', 'target', labels[t]);
      name.scope = 'row';
      const line = node('tr', '', name);
      row.forEach((weight, key) => {
        const cell = node('td', 'cell');
        tint(cell, palette.weights, weight);
        cell.title = `${labels[t]}, ${keys[key]}: ${number(weight)}`;
        line.append(cell);
      });
      return line;
    });
    const body = node('tbody');
    for (const index of new Set(group)) {  // rows of one word take turns in one place
      const mine = bodies.filter((_row, t) => group[t] === index);
      body.append(...mine);
    }
    table.append(node('thead', '', head), body);
    table.setAttribute('aria-label', title);
    const scroll = node('div', 'scroll', table);
    return {section: node('section', 'part', node('h4', 'quiet', title), scroll), scroll, bodies, heads, group, rows};
  }

  paint(at) {
    const {data} = this;
    this.said.textContent = data.aloud[at];
    this.tokens.forEach((token, t) => {
      token.hidden = t > at;
      token.classList.toggle('new', t === at);
    });
    this.came.textContent = data.comes[at];
    for (const map of this.maps) this.rows(map, at);
    this.next.replaceChildren(...data.next[at].map((each) => this.following(each)));
  }

  rows({scroll, bodies, heads, group, rows}, at) {
    bodies.forEach((row, t) => {
      const newer = group.findIndex((index, u) => u > t && u <= at && index === group[t]) >= 0;
      const waits = group.findIndex((index, u) => u < t && index === group[t]) >= 0;  // a place is kept for its word
      row.className = t > at ? (waits ? 'gone' : 'later') : newer ? 'gone' : t === at ? 'new' : '';
      row.setAttribute('aria-hidden', String(row.className === 'later'));
    });
    heads.forEach((head, key) => head.classList.toggle('later', rows[at].length <= key));
    // Where only a part can be seen: the newest row, and of it the newest key or the one that is read most.
    const row = bodies[at], grows = heads.length > rows[0].length;
    const cell = row.cells[grows ? rows[at].length : 1 + rows[at].indexOf(Math.max(...rows[at]))];
    scroll.scrollTop = row.offsetTop + row.offsetHeight - scroll.clientHeight + 8;
    scroll.scrollLeft = cell.offsetLeft + cell.offsetWidth - scroll.clientWidth + (grows ? 8 : 60);
  }

  following({piece, share, drawn, chosen, end, never}) {
    const {words} = this.data, bar = node('span', 'bar2'), track = node('span', 'track', bar);
    bar.style.width = `${100 * share}%`;
    const line = node('li', [chosen && 'chosen', end && 'end', never && 'never'].filter(Boolean).join(' '),
      node('span', 'piece', piece), track, node('span', 'share', percent(share)));
    if (drawn !== null) {
      const frame = node('span', drawn ? 'drawn' : 'drawn none');
      frame.style.width = `${100 * drawn}%`;
      track.append(frame);
      line.append(node('span', 'share two', percent(drawn)));
    }
    line.title = never ? words.never : end ? words.end : '';
    if (chosen) line.setAttribute('aria-current', 'true');
    return line;
  }
}

export default (component) => run(Film, component);
