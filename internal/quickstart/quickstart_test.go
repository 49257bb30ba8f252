// SPDX-License-Identifier: Apache-2.0

package quickstart

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestTranslated(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{}, false},
		{map[string]string{"LANG": "C.UTF-8"}, false},
		{map[string]string{"LANG": "en_US.UTF-8"}, false},
		{map[string]string{"LANG": "de_DE.UTF-8"}, true},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, false},
		{map[string]string{"LANG": "C", "LC_MESSAGES": "ja_JP.UTF-8"}, true},
	} {
		if got := translated(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}

// After its first run the garbage collector has its usual pace again.
func TestUsualPaceAfterFirstCollection(t *testing.T) {
	old := debug.SetGCPercent(77)
	defer debug.SetGCPercent(old)
	postponeGarbageCollection()
	if now := debug.SetGCPercent(firstCollection); now != firstCollection {
		t.Fatalf("at first %d, want %d", now, firstCollection)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		runtime.GC()
		if now := debug.SetGCPercent(firstCollection); now == 77 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("never back at 77")
		}
	}
}
