// SPDX-License-Identifier: Apache-2.0

import { render } from "preact";
import { App } from "./frame/app";
import "./style/base.css";
import "./style/pods.css";
import "./style/pod.css";
import "./style/logs.css";
import "./style/files.css";
import "./style/record.css";

const root = document.getElementById("app");
if (root) {
  root.replaceChildren(); // what is shown until this script is there
  render(<App />, root);
}
