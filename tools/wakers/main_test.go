// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

const example = `M=1 P=0 G=7 StateTransition Time=1000000000 GoID=7 Running->Waiting Reason="select"
TransitionStack=
	runtime.selectgo @ 0x46a9c4
		runtime/select.go:351
	go.etcd.io/etcd/server/v3/storage/backend.(*backend).run @ 0x1
		backend/backend.go:447

Stack=
	runtime.selectgo @ 0x46a9c4
		runtime/select.go:351

M=1 P=0 G=-1 StateTransition Time=1500000000 GoID=7 Waiting->Runnable Reason=""
M=1 P=0 G=7 StateTransition Time=1600000000 GoID=8 Waiting->Runnable Reason=""
M=1 P=0 G=-1 StateTransition Time=2000000000 GoID=7 Waiting->Runnable Reason=""
M=1 P=0 G=-1 StateTransition Time=3000000000 GoID=9 Waiting->Runnable Reason=""
`

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(example), &out); err != nil {
		t.Fatal(err)
	}
	want := `   1.5  a second, over 2.0 s
   1.0  backend.(*backend).run
   0.5  Go's runtime
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if err := run(strings.NewReader("nothing\n"), &out); err == nil {
		t.Error("it reads what is no trace")
	}
}
