// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/mount"
)

// FuzzCRI: whatever a containerd says of itself, of a container and of a sandbox, it is taken or refused in words that
// name what it is about (RS-07); settings that are taken name a folder, and ports that are asked for are ports.
func FuzzCRI(f *testing.F) {
	for _, text := range []string{
		`{"stateDir":"/run/containerd/io.containerd.grpc.v1.cri","containerd":{"snapshotter":"overlayfs"}}`,
		`{"stateDir":"../x"}`, `{"stateDir":"/"}`, `{"stateDir":7}`, `null`, `[]`, ``, `{`, `{"Version":"v2"}`,
		`{"Version":"v1","Metadata":{"Config":{"labels":{"io.kubernetes.container.type":"ephemeral"},"stdin":true},"LogPath":"/x"}}`,
		`{"Version":"v1","Metadata":{"Config":{"port_mappings":[null,{"host_port":80,"container_port":-1,"protocol":9},{"host_port":-7}]},"NetNSPath":"/var/run/netns/x"}}`,
		`{"Version":"v1","Metadata":{"Config":null,"NetNSPath":"/n"}}`, `{"Version":"v1","Metadata":null}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseCRISettings(text); err == nil && !filepath.IsAbs(s.StateDir) {
			t.Errorf("%q is no folder", s.StateDir)
		}
		c, err := parseRecord("some-id", []byte(text))
		if (err == nil) != (c != nil) || err != nil && !strings.Contains(err.Error(), "some-id") {
			t.Errorf("a container: %v, %v", c, err)
		}
		if c != nil {
			keptOutput(c)
		}
		s, err := parseSandbox("some-id", []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "some-id") {
				t.Errorf("a sandbox: %v", err)
			}
			return
		}
		pod, has := s.pod("some-id")
		if has != (s.NetNSPath != "") || has && (pod.Netns != s.NetNSPath || pod.Attachment.ContainerID != "some-id") {
			t.Errorf("%+v is %+v", s, pod)
		}
		for _, p := range pod.Ports {
			if p.HostPort <= 0 || p.Protocol == "" {
				t.Errorf("%+v", p)
			}
		}
	})
}

// FuzzEnd: an end is written into a container's record only if that has none, and changes nothing else in it: containerd
// reads it again (RS-07).
func FuzzEnd(f *testing.F) {
	for _, text := range []string{
		`{"Version":"v1","FinishedAt":0,"StartedAt":0,"CreatedAt":1754042400123456789,"Pid":7,"Reason":"<&>","Big":18446744073709551615}`,
		`{"Version":"v1","FinishedAt":0,"StartedAt":5,"More":{"a":[1e400,null]}}`, `{"Version":"v1","FinishedAt":"0"}`,
		`{"Version":"v1","FinishedAt":9}`, `{"Version":"v2","FinishedAt":0}`, `null`, `[]`, `{`, ``, `{"Version":"v1","FinishedAt":0}{`,
		`{"Version":"v1","FinishedAt":[0]}`, `{"Version":"v1","FinishedAt":-0,"Version":"v1"}`,
	} {
		f.Add([]byte(text), int64(1754042400), uint32(137))
	}
	f.Fuzz(func(t *testing.T, text []byte, at int64, code uint32) {
		path := filepath.Join(t.TempDir(), "status")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := readRecord(path)
		how := &end{At: time.Unix(0, at), Code: code}
		if wrote := writeEnd(path, how); (wrote == nil) != (err == nil) {
			t.Fatalf("read with %v, written with %v", err, wrote)
		}
		got, rerr := os.ReadFile(path)
		if rerr != nil {
			t.Fatal(rerr)
		}
		if before == nil {
			if string(got) != string(text) {
				t.Errorf("%q is then %q", text, got)
			}
			return
		}
		var is struct {
			FinishedAt int64
			ExitCode   uint32
			Pid        int
		}
		if err := json.Unmarshal(got, &is); err != nil || is.FinishedAt != at || is.ExitCode != code || is.Pid != 0 {
			t.Errorf("%q is then %q: %+v, %v", text, got, is, err)
		}
		if at == 0 {
			return // it is as if it had not ended
		}
		if again, err := readRecord(path); err != nil || again != nil {
			t.Errorf("ended once more: %v, %v", again, err)
		}
		after := map[string]any{}
		d := json.NewDecoder(strings.NewReader(string(got)))
		d.UseNumber()
		if err := d.Decode(&after); err != nil {
			t.Fatal(err)
		}
		for _, m := range []map[string]any{before, after} {
			maps.DeleteFunc(m, func(k string, _ any) bool {
				return slices.Contains([]string{"FinishedAt", "ExitCode", "Pid", "StartedAt"}, k)
			})
		}
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%v is then %v", before, after)
		}
	})
}

// FuzzSpec: what is taken from a container's specification are its binds, in order; and layers that cannot be written to
// cannot (RS-07).
func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{"process":{"env":["A=1"]},"root":{"readonly":true},"mounts":[{"destination":"/a","source":"/b","options":["rbind","ro"]},{"type":"proc"},{"type":"bind","uidMappings":[{"hostID":7,"size":4294967295}]}]}`), "overlay", "lowerdir=/a:/b\nupperdir=/u\nworkdir=/w\nrw")
	f.Add([]byte(`{"root":null,"process":null,"mounts":[null]}`), "bind", "rw\nrbind")
	f.Add([]byte(`null`), "overlay", "upperdir=\nlowerdir=/one\nuidmap=0:1:2")
	f.Fuzz(func(t *testing.T, text []byte, kind, options string) {
		if files, err := parseSpec(text); (err == nil) != (files != nil) {
			t.Errorf("%+v, %v", files, err)
		}
		in := []mount.Mount{{Type: kind, Source: "s", Options: strings.Split(options, "\n")}}
		kept := slices.Clone(in[0].Options)
		layers := append(readOnly(in), imageOnly(in)...)
		if !slices.Equal(in[0].Options, kept) {
			t.Errorf("%q have become %q", kept, in[0].Options)
		}
		for _, m := range layers {
			for _, o := range m.Options {
				if o == "rw" || m.Type == "overlay" && (strings.HasPrefix(o, "upperdir=") || strings.HasPrefix(o, "workdir=")) {
					t.Errorf("%q are made %+v", options, m)
				}
			}
		}
	})
}
