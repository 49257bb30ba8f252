// SPDX-License-Identifier: Apache-2.0

const kept = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-weight", "font-family", "text-anchor"];

/** standalone is a drawing of the page as a file of its own: with its styles, without what is for the page alone. */
export function standalone(drawing: SVGSVGElement, ground: string): string {
  const copy = drawing.cloneNode(true) as SVGSVGElement;
  const [from, to] = [elementsOf(drawing), elementsOf(copy)];
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const target = to[i]!;
    for (const name of kept) {
      const value = style.getPropertyValue(name);
      if (value && value !== "none") {
        target.setAttribute(name, value);
      }
    }
    for (const name of ["class", "tabindex", "role", "style"]) {
      target.removeAttribute(name);
    }
  });
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("width", "100%");
  paper.setAttribute("height", "100%");
  paper.setAttribute("fill", ground);
  copy.prepend(paper);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

function elementsOf(drawing: SVGSVGElement): Element[] {
  return [...drawing.querySelectorAll("*")];
}

/** save hands a text to the reader as a file. */
export function save(name: string, type: string, parts: BlobPart[]): void {
  const address = URL.createObjectURL(new Blob(parts, { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
