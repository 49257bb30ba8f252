// SPDX-License-Identifier: Apache-2.0

package procs

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// unpacked are the files of an archive.
func unpacked(t *testing.T, archive io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	r := tar.NewReader(archive)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

// DA-12: what the kernel tells of a process is packed as it tells it, with what it has open and its threads; its environment only if it was
// asked for; and one that ends meanwhile hinders nothing.
func TestPack(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"PASSWORD=hidden"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill() // it runs until then
		_ = cmd.Wait()         // it was killed
	}()
	n := strconv.Itoa(cmd.Process.Pid)
	for _, environment := range []bool{false, true} {
		var out bytes.Buffer
		p := packer{proc: "/proc", out: tar.NewWriter(&out), now: time.Now(), environment: environment}
		if err := errors.Join(p.process(cmd.Process.Pid), p.process(4194303), p.file("self/net/dev", "net/dev"), p.out.Close()); err != nil {
			t.Fatal(err)
		}
		files := unpacked(t, &out)
		for name, want := range map[string]string{"status": "Name:\tsleep", "cmdline": "sleep\x001000\x00", "maps": "[stack]", "limits": "Max open files",
			"fds": "0 -> /dev/null\n", "threads": n + " ", "mountinfo": " / "} {
			if got := files["proc/"+n+"/"+name]; !strings.Contains(got, want) {
				t.Errorf("%s: %q", name, got)
			}
		}
		if got := files["proc/"+n+"/environ"]; got != map[bool]string{true: "PASSWORD=hidden\x00"}[environment] {
			t.Errorf("environment %v: %q", environment, got)
		}
		if !strings.Contains(files["net/dev"], "lo:") {
			t.Errorf("interfaces: %q", files["net/dev"])
		}
		for name := range files {
			if strings.HasPrefix(name, "proc/4194303") {
				t.Errorf("%s of a process that is not there", name)
			}
		}
	}
	if _, err := os.Stat("/proc/" + n); err != nil {
		t.Error("it has ended:", err)
	}
}

// Those below a process are packed with it, and nobody else; a ring of parents, as processes that come and go while they are read make it, has an end.
func TestBelow(t *testing.T) {
	parents := map[int]int{1: 0, 2: 1, 3: 2, 4: 1, 5: 3, 8: 9, 9: 8}
	got := below([]int{1, 2, 3, 4, 5, 8, 9}, 2, func(id int) int { return parents[id] })
	if !slices.Equal(got, []int{2, 3, 5}) {
		t.Errorf("%v", got)
	}
}
