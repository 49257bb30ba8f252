// SPDX-License-Identifier: Apache-2.0

// xterm.js styles its terminal by style elements and style attributes, which the page's Content-Security-Policy does
// not let in: whoever gets markup into a page could style it too. Sheets that a script makes are let in. The build
// (vite.config.ts) has xterm.js call these functions instead.

/** styleElement is an element that stands for a style element: its text becomes a sheet of the document. */
export function styleElement(): HTMLElement {
  const sheet = new CSSStyleSheet();
  const element = document.createElement("span");
  element.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text: string) => sheet.replaceSync(text) });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
    Element.prototype.remove.call(element);
  };
  return element;
}

/** addStyle adds declarations to an element's own. */
export function addStyle(element: HTMLElement, declarations: string): void {
  element.style.cssText += declarations + ";";
}
