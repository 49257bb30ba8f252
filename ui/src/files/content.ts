// SPDX-License-Identifier: Apache-2.0

// What is shown of a file's contents: text, or bytes in hexadecimal. Never anything else: whatever a file says it is, it
// is text nodes in the page.

/** Content is what is to be shown. */
export interface Content {
  binary: boolean;
  text: string;
}

const shownBinary = 4096;

/** contentOf decides from a file's first bytes, and whether there are more than those. */
export function contentOf(data: Uint8Array, cut: boolean): Content {
  const text = textOf(data, cut);
  return text === null ? { binary: true, text: dump(data.subarray(0, shownBinary)) } : { binary: false, text };
}

/** textOf is data as text; null if it is none. */
export function textOf(data: Uint8Array, cut: boolean): string | null {
  if (data.includes(0)) {
    return null;
  }
  try {
    // A letter of several bytes may be cut off at the end.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data, { stream: cut });
    // eslint-disable-next-line no-control-regex -- characters that draw nothing, or act on a terminal
    return text.replaceAll("\r\n", "\n").replace(/[\u0001-\u0008\u000b-\u001f\u007f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
  } catch {
    return null;
  }
}

/** dump is data as hexdump -C writes it. */
export function dump(data: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = Array.from(data.subarray(at, at + 16));
    const codes = row.map((b) => b.toString(16).padStart(2, "0"));
    const letters = row.map((b) => (b >= 0x20 && b < 0x7f ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${codes.slice(0, 8).join(" ").padEnd(23)}  ${codes.slice(8).join(" ").padEnd(23)}  |${letters}|`);
  }
  return lines.join("\n");
}
