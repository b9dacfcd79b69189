// The app in Firefox: prints, as JSON, what was seen. `node smoke.mjs FIREFOX ADDRESS [FOLDER FOR PICTURES]`
// What it ought to be is known to tests/test_firefox.py, which runs this.
import puppeteer from 'puppeteer-core';

const [firefox, address, pictures] = process.argv.slice(2);
const TIME = 90_000;
const seen = {pages: {}, troubles: []};

const browser = await puppeteer.launch({browser: 'firefox', executablePath: firefox, headless: true, timeout: TIME});
const page = await browser.newPage();
page.setDefaultTimeout(TIME);
await page.setViewport({width: 1280, height: 900});
page.on('console', (message) => { if (message.type() === 'error') seen.troubles.push(`${page.url()}: ${message.text()}`); });
page.on('pageerror', (error) => seen.troubles.push(`${page.url()}: ${error.message ?? error}`));

// What the stage knows of itself, by an expression over `stage`; null where no stage stands or it has not drawn.
const asked = (what) => page.evaluate((what) => {
  for (const node of document.querySelectorAll('*')) {
    const stage = node.shadowRoot?.querySelector('.root')?.stage;
    if (stage && node.shadowRoot.querySelector('.stage[aria-busy=false]')) return new Function('stage', `return ${what}`)(stage);
  }
  return null;
}, what);
const said = () => page.evaluate(() => {
  for (const node of document.querySelectorAll('*')) {
    const line = node.shadowRoot?.querySelector('.stage[aria-busy=false] .aloud')?.textContent;
    if (line) return line;
  }
  return '';
});
const until = async (what, found) => {
  for (const end = Date.now() + TIME; Date.now() < end;) {
    const value = await found();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`in vain: ${what}`);
};
const idle = async () => {
  await page.waitForSelector('[data-test-script-state="notRunning"]');
  await new Promise((resolve) => setTimeout(resolve, 500));
  await page.waitForSelector('[data-test-script-state="notRunning"]');
};
const starts = (text) => until(text, async () => (await said()).startsWith(text));
const picture = (name) => pictures && page.screenshot({path: `${pictures}/${name}.png`});

try {
  // A link restored, and its numbers.
  await page.goto(`${address}?text=The+dog+sees+a+cat.&kind=encoder&layer=2&head=3&row=2`, {waitUntil: 'domcontentloaded'});
  await starts('Head 3 of layer 2, working on "dog"');
  await idle();
  seen.weights = await asked('[...stage.maps.weights(stage.at())]');
  seen.pieces = await asked('stage.maps.kinds.encoder.queries');
  seen.painted = await page.evaluate(() => {
    for (const node of document.querySelectorAll('*')) {
      const sheet = node.shadowRoot?.querySelector('.sheet canvas');
      if (!sheet) continue;
      const {data} = sheet.getContext('2d').getImageData(0, 0, sheet.width, sheet.height);
      return new Set(new Uint32Array(data.buffer)).size;
    }
    return 0;
  });
  await picture('stage');

  // Steps by key: two heads on, one layer up; told to the server, and to the address.
  const sheet = await page.waitForSelector('pierce/.sheet');
  await sheet.focus();
  for (const key of ['ArrowRight', 'ArrowRight', 'ArrowUp']) await page.keyboard.press(key);
  await starts('Head 5 of layer 3');
  await until('the address', async () => /head=5/.test(page.url()) && /row=2/.test(page.url()));
  await idle();
  seen.stepped = {url: page.url(), said: await said(), weights: await asked('[...stage.maps.weights(stage.at())]')};

  // Another page by its link, and Back.
  await (await page.waitForSelector('a[href$="/about"]')).click();
  await page.waitForFunction(() => location.pathname.endsWith('/about'));
  await idle();
  await page.goBack({waitUntil: 'domcontentloaded'}).catch(() => undefined);  // no load is awaited: it is one page
  await starts('Head 5 of layer 3');
  await idle();
  seen.back = {url: page.url(), said: await said()};

  // Typing.
  const box = await page.waitForSelector('input[aria-label="English"]');
  await box.click();
  for (const [press, key] of [['down', 'Control'], ['press', 'a'], ['up', 'Control']]) await page.keyboard[press](key);
  await page.keyboard.type('Tom sings.');
  await page.keyboard.press('Enter');
  await until('the typed sentence', async () => (await asked('stage.maps.kinds.encoder.queries'))?.includes('Tom'));
  await idle();
  seen.typed = {url: page.url(), weights: await asked('[...stage.maps.weights(stage.at())]')};

  // Each page from its own link, and other models.
  for (const path of ['', 'head', 'masks', 'positions', 'decode', 'heads', 'training', 'why', 'models', 'about', '?model=gpt', '?model=bert', '?model=rnn-attention']) {
    await page.goto(address + path, {waitUntil: 'domcontentloaded'});
    await page.waitForSelector('[data-testid="stMainBlockContainer"]');
    await until(`${path} stands`, () => page.evaluate(() => document.querySelector('[data-testid="stMainBlockContainer"]').innerText.length > 200));
    await idle();
    seen.pages[path] = await page.evaluate(() => ({
      exceptions: document.querySelectorAll('[data-testid="stException"]').length,
      figures: [...document.querySelectorAll('.js-plotly-plot .main-svg')].length
        + [...document.querySelectorAll('*')].filter((node) => node.shadowRoot?.querySelector('canvas, svg.map')).length,
      sideways: document.scrollingElement.scrollWidth - innerWidth,
    }));
    await picture(path.replace(/\W/g, '') || 'explore');
  }
} catch (error) {
  seen.troubles.push(`${page.url()}: ${error.stack}`);
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
