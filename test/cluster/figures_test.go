// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/wherryproject/wherry/test/cutline"
)

// benched is a pod like those of the tests, in a namespace of its own.
func (u user) benched(name, script string) {
	u.t.Helper()
	u.apply(fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q, "namespace": "bench"}, "spec": {"terminationGracePeriodSeconds": 0,
"containers": [{"name": "main", "image": %q, "command": ["/bin/busybox", "sh", "-c", %q]}]}}`, name, image, script+"; exec /bin/busybox sleep 100000"))
	u.kubectl("wait", "-n", "bench", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// installed sets debugging up for a benchmark, and takes it away after it.
func installed(b *testing.B) user {
	b.Helper()
	if os.Getenv("CLUSTER_NODE") == "" {
		b.Skip("there is no cluster to measure on: make bench-cluster starts one")
	}
	u := user{b, os.Getenv("KUBECONFIG")}
	if r := u.wherry("cluster", "install", "--image-pull-policy", "Never", "--cri-socket", os.Getenv("CLUSTER_CRI"), "--timeout", "90s"); r.code != 0 {
		b.Fatalf("install: %s", r)
	}
	u.kubectl("create", "namespace", "bench")
	b.Cleanup(func() {
		u.kubectl("delete", "namespace", "bench")
		if r := u.wherry("cluster", "uninstall", "--yes"); r.code != 0 {
			b.Errorf("uninstall: %s", r)
		}
	})
	return u
}

// BenchmarkPrompt measures, in turns, from the start of the command to the shell's prompt on a terminal, each in a pod that
// nobody has debugged before.
func BenchmarkPrompt(b *testing.B) {
	u := installed(b)
	var ours, theirs, command []time.Duration
	for n := 0; b.Loop(); n++ {
		name := fmt.Sprintf("web-%d", n)
		u.benched(name, "true")
		time.Sleep(time.Second) // its start is told to the end
		ours = append(ours, u.prompt("WHERRY", "debug", "-q", "-n", "bench", name))
		began := time.Now()
		u.says("x", "debug", "-q", "-n", "bench", name, "--", "echo", "x")
		command = append(command, time.Since(began))
		theirs = append(theirs, u.prompt("KUBECTL", "debug", "-q", "-n", "bench", "-it", name, "--image="+image, "--image-pull-policy=Never",
			"--target=main", "--profile=general", "--", "/bin/busybox", "sh"))
		u.kubectl("delete", "pod", "-n", "bench", name, "--now")
	}
	report(b, "wherry-debug-ms", ours)
	report(b, "wherry-debug-command-ms", command)
	report(b, "kubectl-debug-ms", theirs)
	b.ReportMetric(float64(median(ours))/float64(median(theirs)), "ratio")
}

func median(of []time.Duration) time.Duration { slices.Sort(of); return of[len(of)/2] }

func report(b *testing.B, name string, of []time.Duration) {
	b.ReportMetric(float64(median(of).Microseconds())/1000, name)
}

// prompt runs a command on a terminal until a shell's prompt is there.
func (u user) prompt(program string, args ...string) time.Duration {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), patience)
	defer cancel()
	cmd := u.command(ctx, program, args...)
	began := time.Now()
	terminal, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		u.t.Fatal(err)
	}
	defer terminal.Close()
	var said bytes.Buffer
	buffer := make([]byte, 4096)
	for !bytes.Contains(said.Bytes(), []byte("# ")) {
		n, err := terminal.Read(buffer)
		if err != nil {
			u.t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said.Bytes())
		}
		said.Write(buffer[:n])
	}
	took := time.Since(began)
	if _, err := io.WriteString(terminal, "exit\r"); err != nil {
		u.t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, terminal) // until it ends
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		u.t.Fatal(err)
	}
	return took
}

// BenchmarkCopy measures copies of one GiB out of a pod: of what does not become smaller by any packing, by wherry cp and by
// kubectl exec, which have the same way through kube-apiserver; and by wherry cp on a line that is cut in the middle.
func BenchmarkCopy(b *testing.B) {
	const size = 1 << 30
	u := installed(b)
	u.benched("big", fmt.Sprintf("/bin/busybox head -c %d /dev/urandom >/big; /bin/busybox sha256sum /big >/sum", size))
	sum := u.kubectl("exec", "-n", "bench", "big", "--", "/bin/busybox", "sh", "-c", "until [ -s /sum ]; do /bin/busybox sleep 1; done; /bin/busybox cut -d' ' -f1 /sum")
	file := filepath.Join(b.TempDir(), "big")
	var ours, cut, theirs []time.Duration
	for b.Loop() {
		began := time.Now()
		u.says("", "cp", "-q", "-n", "bench", "big:/big", file)
		ours = append(ours, time.Since(began))
		same(b, file, sum)

		began = time.Now()
		out, err := os.Create(file)
		if err != nil {
			b.Fatal(err)
		}
		cmd := u.command(b.Context(), "KUBECTL", "exec", "-n", "bench", "big", "--", "/bin/busybox", "cat", "/big")
		cmd.Stdout = out
		if err := errors.Join(cmd.Run(), out.Close()); err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(began))
		same(b, file, sum)

		began = time.Now()
		away := u.through(size / 2)
		if r := away.wherry("cp", "-q", "-n", "bench", "big:/big", file); r.code != 0 || !strings.Contains(r.err, "continues from where it was") {
			b.Fatalf("cut in the middle: %s", r)
		}
		cut = append(cut, time.Since(began))
		same(b, file, sum)
	}
	for name, of := range map[string][]time.Duration{"wherry-cp-MB/s": ours, "kubectl-exec-MB/s": theirs, "wherry-cp-cut-MB/s": cut} {
		b.ReportMetric(size/1e6/median(of).Seconds(), name)
	}
}

func same(b *testing.B, file, sum string) {
	b.Helper()
	f, err := os.Open(file)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		b.Fatal(err)
	}
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != sum {
		b.Fatalf("what was copied has the checksum %s, want %s", got, sum)
	}
}

// through is the user behind a line that is cut once, after so many bytes have come.
func (u user) through(bytes int64) user {
	u.t.Helper()
	server := u.kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	line := cutline.New(u.t, strings.TrimPrefix(server, "https://"), bytes)
	text, err := os.ReadFile(u.kubeconfig)
	if err != nil {
		u.t.Fatal(err)
	}
	path := filepath.Join(u.t.TempDir(), "away")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), server, "https://"+line.Address())), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return user{u.t, path}
}
