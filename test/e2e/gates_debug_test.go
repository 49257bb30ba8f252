// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/wherryproject/wherry/test/images"
)

// TestDebugGates: issue 5, feature gates of debugging on a machine of one's own. Off, image exec is not implemented, at the API server
// and at the node (IX-12); wherry debug says what does without it (DC-03), and that does; what failed is not held any more (IX-09). The
// page /configz of both says so.
func TestDebugGates(t *testing.T) {
	t.Parallel()
	k := kitOn(t, own(t))
	k.up("metadata: {name: web}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	k.pod("metadata: {name: held, annotations: {wherry.dev/hold-on-failure: 1h}}\nspec: {containers: [{name: c, command: [sh, -c, 'exit 3']}]}")
	k.WaitWaiting("held", "c", "HeldOnFailure")
	k.wherry(nil, "exec", "web", "-m", images.BusyboxRef, "--", "true").exits(0)

	k.restart("--feature-gates", "ImageExec=false,DebugSessions=false,HoldOnFailure=false")
	k.WaitRestarts("held", "c", 1)
	k.wherry(nil, "exec", "web", "-m", images.BusyboxRef, "--", "true").exits(1).
		Says("image exec into pod web: not implemented: the feature gate ImageExec is off on this server")
	x := imageExec{image: images.BusyboxRef, command: []string{"true"}, spdy: true, ctx: k.ctx()}
	if _, err := k.start("web", x); err == nil || !strings.Contains(err.Error(), "image exec is not implemented: the feature gate ImageExec is off at this node") {
		t.Errorf("the node answers %v", err)
	}
	k.wherry(nil, "debug", "web", "--", "true").exits(1).Says("the feature gate DebugSessions is off", "kubectl debug does without them")
	k.debugger("web", "dbg", Idle)
	for _, path := range []string{"/configz", "/api/v1/nodes/" + k.Server.NodeName + "/proxy/configz"} {
		text, err := k.Server.Client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(k.ctx())
		k.must(err)
		for _, want := range []string{`"ImageExec": false`, `"SidecarContainers": true`, `"data-dir": "` + k.DataDir + `"`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
}
