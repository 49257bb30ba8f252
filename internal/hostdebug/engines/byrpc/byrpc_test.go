// SPDX-License-Identifier: Apache-2.0

package byrpc

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/core/mount"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/hostdebug/engines"
	"github.com/wherryproject/wherry/internal/hostdebug/target"
)

// DA-03: a snapshot is shown without being changed: an overlay's upper folder is the uppermost of those that are read.
func TestLayers(t *testing.T) {
	l, err := layersOf([]mount.Mount{{Type: "overlay", Source: "overlay", Options: []string{"index=off", "workdir=/w", "upperdir=/u", "lowerdir=/l1:/l2"}}})
	if err != nil || strings.Join(l.Overlay, " ") != "/u /l1 /l2" || strings.Join(l.Options, " ") != "index=off" {
		t.Errorf("%+v, %v", l, err)
	}
	if l, err = layersOf([]mount.Mount{{Type: "bind", Source: "/s", Options: []string{"rbind"}}}); err != nil || strings.Join(l.Overlay, " ") != "/s" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, m := range [][]mount.Mount{nil, {{Type: "erofs"}}, {{}, {}}} {
		if l, err := layersOf(m); err == nil {
			t.Errorf("%+v: %+v", m, l)
		}
	}
}

// DA-13: an ID may be cut short as long as one container alone is meant; else those that are meant are named.
func TestChoose(t *testing.T) {
	at := func(ns, id string) place { return place{ns, containers.Container{ID: id}} }
	found := []place{at("a", "web"), at("b", "web-2")}
	if p, err := choose(found, "web", nil); err != nil || p.info.ID != "web" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := choose(found, "we", nil); err == nil || !strings.Contains(err.Error(), "containerd:a/web, containerd:b/web-2") {
		t.Errorf("%v", err)
	}
	if _, err := choose(nil, "we", []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "namespaces: a, b") {
		t.Errorf("%v", err)
	}
}

// DA-13: a pod's container is the newest of its name; another attempt is had by its ID.
func TestMeant(t *testing.T) {
	one := func(id, pod, name string, attempt uint32) *runtimeapi.Container {
		return &runtimeapi.Container{Id: id, PodSandboxId: "s-" + pod, Labels: map[string]string{cri.LabelPodName: pod},
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt}}
	}
	list := []*runtimeapi.Container{one("aa1", "web", "app", 0), one("aa2", "web", "app", 1), one("bb1", "db", "app", 0)}
	for _, c := range []struct{ namespace, name, want, wrong string }{
		{"web", "app", "aa2", ""}, {"", "aa1", "aa1", ""}, {"", "bb", "bb1", ""},
		{"", "aa", "", "cri:aa1"}, {"", "app", "", "several"}, {"web", "none", "", "no such"}, {"", "zz", "", "crictl"},
	} {
		got, err := meant(list, target.Target{Engine: target.CRI, Namespace: c.namespace, Name: c.name})
		if got.GetId() != c.want || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s/%s: %s, %v", c.namespace, c.name, got.GetId(), err)
		}
	}
}

// DA-03: the last lines of a log, without what its format adds.
func TestLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	text := "2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:01Z stderr F two\n2026-01-01T00:00:02Z stdout P th\n2026-01-01T00:00:02Z stdout F ree\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := criLog(path, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "two\nthree\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// What a specification says of a container; nonsense is an error.
func TestSpec(t *testing.T) {
	var d engines.Container
	err := specInto(&d, []byte(`{"process":{"args":["app"],"env":["A=b"],"user":{"uid":1,"gid":2}},"root":{"readonly":true},
 "mounts":[{"destination":"/proc","type":"proc"},{"destination":"/data","type":"bind","source":"/s","options":["rbind","ro"]}]}`))
	if err != nil || d.User != "1:2" || !d.ReadOnly || len(d.Binds) != 1 || d.Binds[0] != (engines.Bind{From: "/s", At: "/data", ReadOnly: true}) {
		t.Errorf("%+v, %v", d, err)
	}
	if err := specInto(&d, []byte("nonsense")); err == nil {
		t.Error("nonsense is taken")
	}
}

// FuzzSpec reads specifications; nothing of one ends the program.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{"mounts":[{"type":"bind"}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { _ = specInto(&engines.Container{}, text) })
}
