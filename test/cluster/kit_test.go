// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// image is the one that pods of the tests run.
const image = "test.wherry.dev/busybox:1"

// patience bounds one command.
const patience = 2 * time.Minute

// result is how a command has ended.
type result struct {
	out, err string
	code     int
}

func (r result) String() string { return fmt.Sprintf("code %d, %q, %q", r.code, r.out, r.err) }

// user is somebody who has a kubeconfig.
type user struct {
	t          testing.TB
	kubeconfig string
}

// admin is the one who has set the cluster up.
func admin(t *testing.T) user {
	t.Helper()
	if os.Getenv("CLUSTER_NODE") == "" {
		t.Skip("there is no cluster to test on: make test-cluster-debug starts one")
	}
	return user{t, os.Getenv("KUBECONFIG")}
}

// with is the user in another test.
func (u user) with(t testing.TB) user { return user{t, u.kubeconfig} }

func (u user) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Getenv(program), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig)
	return cmd
}

// run runs a program, with nothing to read but what is given.
func (u user) run(in, program string, args ...string) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(u.t.Context()), patience) // also to clean up
	defer cancel()
	var out, errs bytes.Buffer
	cmd := u.command(ctx, program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		u.t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func (u user) wherry(args ...string) result { u.t.Helper(); return u.run("", "WHERRY", args...) }

// kubectl runs what must succeed.
func (u user) kubectl(args ...string) string {
	u.t.Helper()
	r := u.run("", "KUBECTL", args...)
	if r.code != 0 {
		u.t.Fatalf("kubectl %s: %s", strings.Join(args, " "), r)
	}
	return strings.TrimSpace(r.out)
}

func (u user) apply(manifest string) {
	u.t.Helper()
	if r := u.run(manifest, "KUBECTL", "apply", "-f", "-"); r.code != 0 {
		u.t.Fatalf("apply: %s", r)
	}
}

// says runs a command that must succeed and print so.
func (u user) says(want string, args ...string) {
	u.t.Helper()
	if r := u.wherry(args...); r.code != 0 || !strings.Contains(r.out, want) {
		u.t.Errorf("wherry %s: %s; want %q", strings.Join(args, " "), r, want)
	}
}

// refused runs a command that must fail and say why.
func (u user) refused(why string, args ...string) {
	u.t.Helper()
	if r := u.wherry(args...); r.code == 0 || !strings.Contains(r.err, why) {
		u.t.Errorf("wherry %s: %s; it should be refused: %q", strings.Join(args, " "), r, why)
	}
}

// account makes a user who has no rights yet.
func (u user) account(name string) user {
	u.t.Helper()
	u.kubectl("create", "serviceaccount", name, "-n", "people")
	token := u.kubectl("create", "token", name, "-n", "people")
	path := filepath.Join(u.t.TempDir(), name)
	config := u.kubectl("config", "view", "--minify", "--flatten", "--raw", "-o",
		"jsonpath={.clusters[0].cluster.server} {.clusters[0].cluster.certificate-authority-data}")
	server, ca, _ := strings.Cut(config, " ")
	text := fmt.Sprintf(`{"kind":"Config","apiVersion":"v1","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`, server, ca, token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return user{u.t, path}
}

// bind gives a user a role in a namespace.
func (u user) bind(namespace, role, name string) {
	u.t.Helper()
	u.kubectl("create", "rolebinding", name+"-"+role, "-n", namespace, "--clusterrole="+role, "--serviceaccount=people:"+name)
}

// open is a session that goes on.
type open struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bytes.Buffer // after it has ended
}

func (o open) wait() error { return o.cmd.Wait() }

// begun opens a session with the pod of the tests, and returns when its script runs.
func (u user) begun(script string) open {
	u.t.Helper()
	o := open{cmd: u.command(u.t.Context(), "WHERRY", "debug", "-n", "shop", "web", "--target", "main", "--", "sh", "-c", "echo begun; "+script),
		out: &bytes.Buffer{}}
	r, w := io.Pipe()
	o.cmd.Stdout = io.MultiWriter(o.out, w)
	var err error
	if o.in, err = o.cmd.StdinPipe(); err != nil {
		u.t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 16)); n == 0 {
		u.t.Fatalf("the session does not begin: %v", err)
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	u.t.Cleanup(func() { _ = w.Close() })
	return o
}

// agents are the processes of the agents on this machine.
func agents(t *testing.T) (pids []int) {
	t.Helper()
	text, err := exec.Command("pgrep", "-f", "^/wherry cluster-agent").Output()
	if err != nil {
		t.Fatalf("the agent's process: %v", err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// debugProcesses are those that sessions have on this machine.
func debugProcesses(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"/sys/fs/cgroup/*/wherry-debug/*/cgroup.procs", "/sys/fs/cgroup/wherry-debug/*/cgroup.procs"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if text, err := os.ReadFile(f); err == nil && len(text) > 0 {
				found = append(found, f)
			}
		}
	}
	if dirs, err := os.ReadDir("/run/wherry-debug"); err == nil {
		for _, d := range dirs {
			found = append(found, "/run/wherry-debug/"+d.Name())
		}
	}
	return found
}

// await waits for what has no event to wait for.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
