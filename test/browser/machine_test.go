// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"testing"

	"github.com/wherryproject/wherry/test/e2e"
)

// UI-08 UI-09: what node and pods used is drawn and told as text, from when the page was first asked for it, also while
// other views are open.
func TestCharts(t *testing.T) {
	s := space(t)
	s.Create(e2e.NewPod("web", e2e.Sh(`kept=$(head -c 30000000 /dev/zero | tr '\0' x); `+e2e.Idle)))
	s.WaitReady("web")
	tab := open(t, s)
	tab.Go("/ui/nodes")
	tab.Sees("Charts come with the second figures")
	tab.Until("draw charts", `document.querySelectorAll(".chart canvas").length === 3`)
	tab.Sees("Since", "The node keeps no past", "wherry kubectl get --raw /api/v1/nodes/")
	tab.Until("tell what the pod has",
		`[...document.querySelectorAll(".chart-legend li")].some((e) => /\/web\s+[\d.]+ MiB/.test(e.innerText) && e.innerText.includes("`+s.Namespace+`"))`)
	if !Get[bool](tab,
		`[...document.querySelectorAll(".chart canvas")].every((c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v !== 0))`) {
		t.Error("a chart is empty")
	}
	since := Get[string](tab, `document.body.innerText.match(/Since [^:]+:[^:]+:\S+/)[0]`)
	tab.Click("Pods")
	tab.Until("show pods", `location.pathname === "/ui/pods"`)
	tab.Click("Nodes")
	tab.Until("have the charts still", `document.querySelectorAll(".chart canvas").length === 3`)
	tab.Sees(since)
	tab.Click("Charts")
	tab.Until("put them away", `!document.querySelector(".chart")`)
}
