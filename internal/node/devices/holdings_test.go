// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// An answer that says nothing is another thing than no answer yet.
func TestHoldings(t *testing.T) {
	none, err := newHolding([]string{"a"}, nil, false)
	if err != nil || none.Answer != nil {
		t.Errorf("%+v, %v", none, err)
	}
	empty, err := newHolding([]string{"b"}, &plugin.ContainerAllocateResponse{}, true)
	if err != nil || empty.Answer == nil {
		t.Errorf("%+v, %v", empty, err)
	}
	h := holdings(nil).with("c", "r", none).with("c", "s", empty).with("d", "r", none)
	file := filepath.Join(t.TempDir(), FileName)
	if err := writeHoldings(file, h); err != nil {
		t.Fatal(err)
	}
	again, err := readHoldings(file)
	if err != nil || !reflect.DeepEqual(h, again) {
		t.Errorf("%+v, %v, want %+v", again, err, h)
	}
	if !h.of("r") || h.of("x") {
		t.Error("of")
	}
}

// FuzzReadHoldings: whatever the file of a pod holds, it is read or refused, and what is read is the same when it is
// written again.
func FuzzReadHoldings(f *testing.F) {
	for _, text := range []string{`{"c":{"r":{"ids":["a"],"answer":"CgA="}}}`, `{"c":{"r":{"ids":null,"answer":""}}}`,
		`{"c":null}`, `[]`, `{`, `null`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file := filepath.Join(t.TempDir(), FileName)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		h, err := readHoldings(file)
		if err != nil {
			return
		}
		for _, has := range h {
			for _, one := range has {
				_, _ = one.answer()
			}
		}
		if err := writeHoldings(file, h); err != nil {
			t.Fatal(err)
		}
		again, err := readHoldings(file)
		if err != nil || len(again) != len(h) {
			t.Errorf("%q: %+v, %v", text, again, err)
		}
	})
}

// PL-34: what two plug-ins want of one container is put together; only a device has to be the same for both.
func TestGiven(t *testing.T) {
	a := &plugin.ContainerAllocateResponse{Envs: map[string]string{"B": "2", "A": "1"},
		Mounts:      []*plugin.Mount{{ContainerPath: "/lib/x/", HostPath: "/x", ReadOnly: true}},
		Devices:     []*plugin.DeviceSpec{{ContainerPath: "/dev/x", HostPath: "/dev/x0", Permissions: "rw"}},
		CdiDevices:  []*plugin.CDIDevice{{Name: "v.example/x=0"}},
		Annotations: map[string]string{"n": "a"}}
	b := &plugin.ContainerAllocateResponse{Envs: map[string]string{"A": "other"},
		Mounts:      []*plugin.Mount{{ContainerPath: "/lib/x", HostPath: "/y"}},
		Devices:     []*plugin.DeviceSpec{{ContainerPath: "/dev/x", HostPath: "/dev/x0", Permissions: "r"}},
		CdiDevices:  []*plugin.CDIDevice{{Name: "v.example/x=0"}, {Name: "v.example/x=1"}},
		Annotations: map[string]string{"n": "b", "o": "b"}}
	g, err := given([]*plugin.ContainerAllocateResponse{a, b})
	if err != nil || len(g.Envs) != 2 || g.Envs[0].Key != "A" || string(g.Envs[0].Value) != "1" || len(g.Mounts) != 1 ||
		g.Mounts[0].HostPath != "/x" || !g.Mounts[0].Readonly || len(g.Devices) != 1 ||
		g.Devices[0].Permissions != "rw" ||
		len(g.CDI) != 2 || g.Annotations["n"] != "a" || g.Annotations["o"] != "b" {
		t.Errorf("%+v, %v", g, err)
	}
	b.Devices[0].HostPath = "/dev/x1"
	if _, err := given([]*plugin.ContainerAllocateResponse{a, b}); err == nil ||
		!strings.Contains(err.Error(), "two device plug-ins want different devices at /dev/x: /dev/x0 and /dev/x1") {
		t.Errorf("%v", err)
	}
	if g, err := given(nil); g != nil || err != nil {
		t.Errorf("nothing: %+v, %v", g, err)
	}
}
