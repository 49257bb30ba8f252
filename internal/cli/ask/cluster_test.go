// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"testing"

	"github.com/wherryproject/wherry/internal/cluster/wire"
	"github.com/wherryproject/wherry/internal/debug/debugask"
)

// DA-05: what a command of the toolbox is on a cluster that has debug.wherry.dev: an image exec that names its image, or for an
// archive a request about files alone.
func TestToolboxInCluster(t *testing.T) {
	s := Toolbox{Pod: "web", Sees: "main", Command: []string{"/bin/toolbox", "proc-pack"}}.Session().InCluster
	if s.Subresource != wire.Exec || s.Query.Get(wire.ParamImage) != debugask.ToolboxImage || s.Query.Get("container") != "main" ||
		s.Wherrys() {
		t.Errorf("%+v", s)
	}
	s = Toolbox{Pod: "web", Archive: &Archive{Container: "main", Path: "/x", Unpack: true}}.Session().InCluster
	if s.Subresource != wire.Files || s.Query.Get(wire.ParamOp) != wire.OpUnpack || s.Query.Has("command") || s.Query.Has(wire.ParamImage) {
		t.Errorf("%+v", s)
	}
}
