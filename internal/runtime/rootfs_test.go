// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"reflect"
	"testing"

	"github.com/containerd/containerd/v2/core/mount"
)

// What a container sees is read from its specification (IX-04).
func TestParseSpec(t *testing.T) {
	got, err := parseSpec([]byte(`{"process":{"env":["A=1","B=two"]},"root":{"path":"rootfs","readonly":true},"mounts":[
		{"destination":"/proc","type":"proc","source":"proc","options":["nosuid"]},
		{"destination":"/dev/shm","type":"bind","source":"/run/shm","options":["rbind","ro"]},
		{"destination":"/data","type":"bind","source":"/v/data","options":["rbind","rprivate","rw"]},
		{"destination":"/conf","source":"/v/conf","options":["bind","rro"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Files{Env: []string{"A=1", "B=two"}, ReadOnlyRoot: true, Binds: []Bind{
		{From: "/run/shm", At: "/dev/shm", ReadOnly: true, Recursive: true},
		{From: "/v/data", At: "/data", Recursive: true},
		{From: "/v/conf", At: "/conf", ReadOnly: true},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := parseSpec([]byte("{")); err == nil {
		t.Error("half a specification was taken")
	}
}

// A dead container's layers can be shown many times only if nothing can be written to them (IX-04, IX-09).
func TestReadOnlyLayers(t *testing.T) {
	for name, c := range map[string]struct{ in, want mount.Mount }{
		"overlay": {
			mount.Mount{Type: "overlay", Source: "overlay", Options: []string{"index=off", "workdir=/s/3/work", "upperdir=/s/3/fs", "lowerdir=/s/2/fs:/s/1/fs"}},
			mount.Mount{Type: "overlay", Source: "overlay", Options: []string{"index=off", "lowerdir=/s/3/fs:/s/2/fs:/s/1/fs"}},
		},
		"an image without layers": {
			mount.Mount{Type: "bind", Source: "/s/1/fs", Options: []string{"rw", "rbind"}},
			mount.Mount{Type: "bind", Source: "/s/1/fs", Options: []string{"rbind", "ro"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]string(nil), c.in.Options...)
			got := readOnly([]mount.Mount{c.in})
			if !reflect.DeepEqual(got, []mount.Mount{c.want}) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			if !reflect.DeepEqual(before, c.in.Options) {
				t.Error("the mounts that were given are changed")
			}
		})
	}
}

// TestImageOnly: UI-06: the image's own files are an overlay's lower layers, a single one of which is bound; where they
// cannot be told apart, or would have other owners, there are none.
func TestImageOnly(t *testing.T) {
	overlay := func(options ...string) []mount.Mount {
		return []mount.Mount{{Type: "overlay", Source: "overlay", Options: options}}
	}
	for name, c := range map[string]struct{ in, want []mount.Mount }{
		"two layers": {overlay("index=off", "workdir=/w", "upperdir=/u", "lowerdir=/b:/a"), overlay("lowerdir=/b:/a", "ro")},
		"one layer": {overlay("workdir=/w", "upperdir=/u", "lowerdir=/a"),
			[]mount.Mount{{Type: "bind", Source: "/a", Options: []string{"rbind", "ro"}}}},
		"other owners":           {overlay("uidmap=0:1:2", "upperdir=/u", "lowerdir=/b:/a"), overlay("uidmap=0:1:2", "lowerdir=/b:/a", "ro")},
		"one, with other owners": {overlay("uidmap=0:1:2", "upperdir=/u", "lowerdir=/a"), nil},
		"no overlay":             {[]mount.Mount{{Type: "bind", Source: "/a"}}, nil},
		"no layers":              {nil, nil},
	} {
		if got := imageOnly(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
