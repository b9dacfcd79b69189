// Keeps what was chosen on a page while another one is looked at. Left to itself, Streamlit drops a page's own
// parameters when the page is left, and first pushes the old page's address without them: Back would lead to a page
// that has forgotten everything. So a link to another page is followed here, in one step of the browser's history, and
// the page's own parameters wait until it is opened again.
// It also tells Python when the theme has changed under an open page, as an evening does it: what is drawn there has the
// colours of the theme that it was drawn in. Streamlit has no event for it, so a transition of its colour is one.
// data: the names of the parameters that all pages share

const kept = new Map();  // path: its own parameters, as it was left

export default function ({parentElement, data, setTriggerValue}) {
  const root = parentElement.querySelector('.root');
  root.style.cssText = 'color: var(--st-background-color); transition: color 1ms';
  root.ontransitionend = () => setTriggerValue('theme', true);
  const follow = (event) => {
    const link = event.target.closest?.('a[href]');
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const here = new URL(location.href), to = new URL(link.href);
    if (link.target || to.origin !== here.origin || to.pathname === here.pathname) return;
    const own = [];
    for (const pair of here.searchParams) {
      if (!data.includes(pair[0])) own.push(pair);
      else if (!to.searchParams.has(pair[0])) to.searchParams.append(...pair);
    }
    kept.set(here.pathname, own);
    for (const [name, value] of kept.get(to.pathname) ?? []) to.searchParams.append(name, value);
    to.searchParams.sort();  // as Streamlit writes them: else it would push its own order on top
    event.preventDefault();
    event.stopImmediatePropagation();
    history.pushState({}, '', to);
    window.dispatchEvent(new PopStateEvent('popstate'));
    // A press beside it shuts a phone's menu of pages.
    parentElement.dispatchEvent(new MouseEvent('mousedown', {bubbles: true, composed: true}));
  };
  window.addEventListener('click', follow, true);
  return () => window.removeEventListener('click', follow, true);
}
