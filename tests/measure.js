// What a reader could not read: letters and controls that are cut off or lie over one another, over all open shadow
// roots. A function for a page to run; tests/browsers.py hands it over.
() => {
    const faults = new Set(), wide = innerWidth, texts = [];
    const said = text => text.trim().replace(/\s+/g, ' ').slice(0, 60);
    const up = node => node.assignedSlot || node.parentElement || node.getRootNode().host || null;
    const seen = node => node.checkVisibility({opacityProperty: true, visibilityProperty: true})
        && !node.closest('[aria-hidden=true], .katex-mathml, [inert]');
    const page = document.scrollingElement, main = document.querySelector('[data-testid=stMain]');
    for (const [name, box] of [['page', page], ['main', main]]) if (box && box.scrollWidth > box.clientWidth + 1)
        faults.add(`the ${name} scrolls sideways: ${box.scrollWidth} > ${box.clientWidth}`);
    // What a rectangle may show: null where something scrolls it sideways, which is a way to read it.
    const shown = node => {
        let left = 0, right = wide;
        for (let at = node; at; at = up(at)) {
            const style = getComputedStyle(at), box = at.getBoundingClientRect();
            if (style.position === 'fixed') break;
            if (style.overflowX === 'visible' || at === document.body || at === document.documentElement) continue;
            if (at !== main && /auto|scroll/.test(style.overflowX) && at.scrollWidth > at.clientWidth + 1)
                return null;
            if (at instanceof SVGElement && at.tagName !== 'svg') continue;
            left = Math.max(left, box.left); right = Math.min(right, box.right);
        }
        return right - left > 2 ? [left, right] : null;  // words for screen readers alone stand in a pixel
    };
    const judge = (node, box, what) => {
        if (box.right <= 1 && node.closest('[data-testid=stSidebar]')) return;  // a phone's menu, shut
        const room = shown(node);
        if (room && (box.left < room[0] - 1 || box.right > room[1] + 1)) faults.add(
            `cut: ${what} (${Math.round(box.left)} to ${Math.round(box.right)} in ${room.map(Math.round)})`);
    };
    const walk = root => {
        for (const node of root.querySelectorAll('*')) {
            if (node.shadowRoot) walk(node.shadowRoot);
            if (['STYLE', 'SCRIPT', 'TITLE', 'OPTION'].includes(node.tagName) || !seen(node)) continue;
            if (node.matches('button, a[href], input, select, textarea, [role=radio], [role=tab], summary, label')) {
                const box = node.getBoundingClientRect();
                if (box.width > 2 && box.height > 2) judge(node, box, `${node.tagName} "${said(node.ariaLabel || node.textContent)}"`);
            }
            for (const part of node.childNodes) {
                if (part.nodeType !== Node.TEXT_NODE || !part.data.trim()) continue;
                const turned = node instanceof SVGElement && Math.abs(node.getScreenCTM()?.b ?? 0) > 0.01;
                if (turned) continue;  // its rectangle is larger than its letters
                const range = document.createRange();
                range.selectNodeContents(part);
                for (const box of range.getClientRects()) {
                    if (box.width < 2 || box.height < 4) continue;
                    judge(node, box, `"${said(part.data)}"`);
                    texts.push({box, node, text: said(part.data), katex: node.closest('.katex'), fixed: fixed(node)});
                }
            }
        }
    };
    const fixed = node => {
        for (let at = node; at; at = up(at)) {
            if (/fixed|sticky/.test(getComputedStyle(at).position)) return true;
            if (at.dataset?.testid === 'stHeader' || at.matches('[data-testid=stPopoverBody]')) return true;
        }
        return false;
    };
    walk(document);
    for (const node of document.querySelectorAll('.katex-display')) if (node.scrollWidth > node.clientWidth + 3)
        faults.add(`cut: a formula, ${node.textContent.slice(0, 40)} (${node.scrollWidth} in ${node.clientWidth})`);
    // Lines of one paragraph stand close; letters that meet by more than a third of the smaller line's height do not.
    texts.sort((one, other) => one.box.top - other.box.top);
    texts.forEach((one, at) => {
        for (let next = at + 1; next < texts.length && texts[next].box.top < one.box.bottom; next += 1) {
            const other = texts[next];
            if (one.fixed || other.fixed || (one.katex && one.katex === other.katex)) continue;
            const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
            const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
            if (across > 4 && down > Math.min(one.box.height, other.box.height) * 0.4)
                faults.add(`overlap: "${one.text}" and "${other.text}" (${Math.round(across)} x ${Math.round(down)})`);
        }
    });
    // The picture: the stage's names of rows and columns, and every figure's, in px.
    for (const node of document.querySelectorAll('*')) {
        const stage = node.shadowRoot?.querySelector('.root')?.stage;
        for (const item of stage?.layout?.items ?? []) for (const side of ['rows', 'columns'])
            if (item[side]?.size < 11) faults.add(`small: ${side} of the stage in ${item[side].size} px`);
    }
    for (const text of document.querySelectorAll('.js-plotly-plot text')) {
        const size = parseFloat(getComputedStyle(text).fontSize);
        if (size < 10 && text.textContent.trim()) faults.add(`small: "${said(text.textContent)}" in ${size} px`);
    }
    return [...faults];
}
