// SPDX-License-Identifier: Apache-2.0

import { useEffect, useRef } from "preact/hooks";

const keys: [string, string][] = [
  ["/", "go to the filter, or to the search of a log"],
  ["↑ ↓ PgUp PgDn Home End", "move in a list"],
  ["Enter", "open what is chosen"],
  ["Esc", "leave a field; close this"],
  ["← →", "in the life of a pod: from one stretch to the next; Enter opens the log at that moment"],
  ["Backspace, d", "in a folder: to the folder above it; download what is chosen"],
  ["Ctrl+F6", "leave the terminal for the page; the shell goes on"],
  ["?", "this help"],
];

/** Help lists the keys. */
export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" onClose={close} aria-labelledby="help-title">
      <h2 id="help-title">Keys</h2>
      <dl>
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt><kbd>{key}</kbd></dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p class="dim">The filter takes words, and labels as kubectl's -l does: <code>web app=front !canary tier!=db</code>; of the record, <code>pod=web user=jane</code></p>
      <form method="dialog"><button>Close</button></form>
    </dialog>
  );
}
