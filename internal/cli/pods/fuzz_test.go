// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzPlace: whatever stands for one side of a copy, it is a path here or one in a pod, never something between, and a path here stays
// as it was given.
func FuzzPlace(f *testing.F) {
	for _, text := range []string{"web:/etc/nginx", "shop/web:data/*.log", "./a:b", "../x:y", "~/a:b", "/a:b", ":x", "a/b/c:x", "/:x", "web:", "-", "", "a:b:c", "C:\\x", "a/:x", "/a/b:", "web:\x00", "docker:web:/x", "pid:1:x", "docker:/x", "docker:x", "cri:a/b:/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePlace(text)
		switch {
		case err != nil && !slices.ContainsFunc([]string{"POD:PATH", "path in the pod", "path is missing", "names nothing", "number of a process"},
			func(words string) bool { return strings.Contains(err.Error(), words) }):
			t.Errorf("%q: not said what is wrong: %v", text, err)
		case err != nil:
		case p.host != nil:
			engine, _, _ := strings.Cut(text, ":")
			if p.pod != "" || p.namespace != "" || p.path == "" || string(p.host.Engine) != engine || !strings.HasSuffix(text, ":"+p.path) {
				t.Errorf("%q is %+v", text, p)
			}
		case p.pod == "" && (p.namespace != "" || p.path != text):
			t.Errorf("%q is %+v", text, p)
		case p.pod == "": // a path on this machine
		case p.path == "" || strings.ContainsAny(p.pod+p.namespace, "/:"):
			t.Errorf("%q is %+v", text, p)
		case p.namespace == "" && p.pod+":"+p.path != text && "/"+p.pod+":"+p.path != text:
			t.Errorf("%q is %+v", text, p)
		case p.namespace != "" && p.namespace+"/"+p.pod+":"+p.path != text:
			t.Errorf("%q is %+v", text, p)
		}
	})
}

// FuzzRelay: whatever the other side of a copy says, in whatever pieces, the user reads the same whole lines, each of which says whose it
// is, and notes about other containers only where they matter.
func FuzzRelay(f *testing.F) {
	f.Add("total 512\ncp-pack: /x: permission denied\nwherry: container web is gone\nwherry: container db cannot run\n", uint8(7), true)
	f.Add("cp-unpack: no such folder", uint8(1), true)
	f.Add("total -1\ntotal 99999999999999999999\ntotal\n\n\nwherry: ", uint8(0), false)
	f.Fuzz(func(t *testing.T, said string, piece uint8, failed bool) {
		var cause error
		if failed {
			cause = errors.New("failed")
		}
		hear := func(size int) (string, int64) {
			var out bytes.Buffer
			m := &meter{}
			r := newRelay(&out, other{container: "web", words: "container web of pod shop"}, m)
			for rest := []byte(said); len(rest) > 0; {
				n := min(size, len(rest))
				if wrote, err := r.Write(rest[:n]); wrote != n || err != nil {
					t.Fatalf("%d of %d bytes: %v", wrote, n, err)
				}
				rest = rest[n:]
			}
			if err := r.end(cause); !errors.Is(err, cause) {
				t.Fatalf("it ended with %v", err)
			}
			return out.String(), m.total.Load()
		}
		whole, total := hear(len(said) + 1)
		if parts, again := hear(1 + int(piece)); parts != whole || again != total {
			t.Errorf("in pieces of %d: %q, %d; at once: %q, %d", 1+int(piece), parts, again, whole, total)
		}
		for line := range strings.Lines(whole) {
			if !strings.HasSuffix(line, "\n") || !failed && !strings.HasPrefix(line, "container web of pod shop: ") {
				t.Errorf("the user reads %q", line)
			}
		}
	})
}
