// One map as the weights were at each snapshot, what the model wrote then, and tables over all snapshots.
// data, beside that of a player: {rows: names, out: names or null, keys, sides, weights: [snapshot][row][key],
// blocked: [row][key], chosen: row, numbers: whether they stand in the cells, said: [text], facts: [text],
// wrote: [text], tables: [{title, note, rows: [{name, shares, shown, said}]}]}

class Snapshots extends Player {
  compose() {
    const {data} = this, {words} = data;
    this.said = node('p', 'aloud');
    this.said.setAttribute('aria-live', 'polite');
    this.facts = node('p', 'quiet');
    const head = node('tr', '', node('td'), ...data.keys.map((key) => {
      const cell = node('th', data.sides[1], node('span', '', key));
      cell.scope = 'col';
      return cell;
    }));
    this.cells = data.rows.map((_row, query) => data.keys.map((_key, key) => node('td', data.blocked[query][key] ? 'cell blocked' : 'cell')));
    const bodies = data.rows.map((row, query) => {
      const name = node('th', data.sides[0], row);
      if (data.out) name.append(node('span', 'quiet', ` → ${data.out[query]}`));
      name.scope = 'row';
      return node('tr', query === data.chosen ? 'new' : '', name, ...this.cells[query]);
    });
    const map = node('table', 'map large', node('thead', '', head), node('tbody', '', ...bodies));
    map.setAttribute('aria-label', words.map);
    const scroll = node('div', 'scroll', map);
    if (data.keys.length > 12) scroll.tabIndex = 0;  // so that keys can scroll it
    this.wrote = data.wrote.map((text, at) => node('li', '', node('span', 'quiet', `${data.labels[at]}: `), text));
    this.columns = data.labels.map(() => []);
    this.scrolls = [];
    const left = node('section', 'part', scroll, this.facts);
    const right = node('section', 'wrote', this.said, node('h4', '', words.wrote), node('ol', '', ...this.wrote));
    return [node('div', 'parts', left, right), node('div', 'parts', ...data.tables.map((table) => this.table(table)))];
  }

  table({title, note, rows}) {
    const {data} = this, head = node('tr', '', node('td'));
    data.labels.forEach((label, at) => {
      const press = node('button', 'plain', label);
      press.onclick = () => this.go(at + 1);
      const cell = node('th', '', press);
      cell.scope = 'col';
      this.columns[at].push(cell);
      head.append(cell);
    });
    const bodies = rows.map(({name, shares, shown, said}) => {
      const line = node('tr', '', node('th', '', name));
      line.cells[0].scope = 'row';
      shares.forEach((share, at) => {
        const cell = node('td', 'cell', shown[at]);
        tint(cell, data.palette.weights, share);
        cell.title = said[at];
        this.columns[at].push(cell);
        line.append(cell);
      });
      return line;
    });
    const table = node('table', 'map tracks', node('thead', '', head), node('tbody', '', ...bodies));
    table.setAttribute('aria-label', title);
    const scroll = node('div', 'scroll', table);
    this.scrolls.push({scroll, heads: [...head.cells].slice(1)});
    return node('section', 'part', node('h4', '', title), scroll, node('p', 'quiet note', note));
  }

  paint(at) {
    const {data} = this;
    this.said.textContent = data.said[at];
    this.facts.textContent = data.facts[at];
    this.cells.forEach((row, query) => row.forEach((cell, key) => {
      if (data.blocked[query][key]) {
        cell.title = data.blocked[query][key];
        return;
      }
      const weight = data.weights[at][query][key];
      tint(cell, data.palette.weights, weight);
      cell.title = `${data.rows[query]}, ${data.keys[key]}: ${number(weight)}`;
      cell.textContent = data.numbers ? weight.toFixed(2) : '';
    }));
    this.wrote.forEach((line, each) => line.classList.toggle('chosen', each === at));
    for (const {scroll, heads} of this.scrolls) {
      scroll.scrollLeft = heads[at].offsetLeft + heads[at].offsetWidth - scroll.clientWidth + 8;
    }
    this.columns.forEach((cells, each) => cells.forEach((cell, row) => {
      cell.classList.toggle('now', each === at);
      if (!row) cell.setAttribute('aria-current', String(each === at));
    }));
  }
}

export default (component) => run(Snapshots, component);
