// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
	"github.com/wherryproject/wherry/internal/podspec"
)

// Env is a runtime to be held to the contract.
type Env struct {
	Client *cri.Client
	// Image is on the node already; its entrypoint is critest/prog, at /prog.
	Image string
	// HostNetwork puts the sandboxes on the node's network, for a runtime without pod network.
	HostNetwork bool
	// CgroupParent is given to the sandboxes.
	CgroupParent string
	// KillPause kills a sandbox's own process. Nil: by the pid in its verbose status, as containerd gives it.
	KillPause func(sandboxID string) error
	// NoEvents leaves out what is said of GetContainerEvents.
	NoEvents bool
}

// Case is one article of the contract.
type Case struct {
	Name string
	Test func(t *testing.T, e Env)
}

// Run holds the runtime that newEnv gives to every article of the contract, in subtests.
func Run(t *testing.T, newEnv func(t *testing.T) Env) {
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) { c.Test(t, newEnv(t)) })
	}
}

// Cases are the articles, for those who cannot use [Run]: inside a testing/synctest bubble there are no subtests.
func Cases() []Case {
	return append(append(append(sandboxCases(), containerCases()...), processCases()...), observeCases()...)
}

// patience is how long a real runtime may take for anything.
const patience = 30 * time.Second

// pods numbers the pods of all suites of a process, so that none meets another's.
var pods atomic.Int64

// pod is one pod under test, removed at the test's end.
type pod struct {
	t       *testing.T
	env     Env
	client  *cri.Client
	config  *runtimeapi.PodSandboxConfig
	sandbox string
	uid     string
}

// newPod runs a sandbox.
func newPod(t *testing.T, e Env, change ...func(*runtimeapi.PodSandboxConfig)) *pod {
	t.Helper()
	p := unrunPod(t, e, change...)
	p.sandbox = p.run()
	return p
}

// unrunPod is a pod whose sandbox is not run yet.
func unrunPod(t *testing.T, e Env, change ...func(*runtimeapi.PodSandboxConfig)) *pod {
	t.Helper()
	n := pods.Add(1)
	uid := fmt.Sprintf("00000000-0000-4000-8000-%012x", time.Now().UnixNano()&0xffffffff<<12|n&0xfff)
	name := fmt.Sprintf("conformance-%d", n)
	options := &runtimeapi.NamespaceOption{Pid: runtimeapi.NamespaceMode_CONTAINER}
	if e.HostNetwork {
		options.Network = runtimeapi.NamespaceMode_NODE
	}
	config := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: name, Namespace: "test", Uid: uid},
		LogDirectory: t.TempDir(),
		Labels:       map[string]string{cri.LabelPodName: name, cri.LabelPodNamespace: "test", cri.LabelPodUID: uid},
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    e.CgroupParent,
			SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: options},
		},
	}
	if !e.HostNetwork {
		config.Hostname = name
	}
	for _, c := range change {
		c(config)
	}
	p := &pod{t: t, env: e, client: e.Client, config: config, uid: uid}
	t.Cleanup(p.cleanUp)
	return p
}

// cleanUp removes whatever the runtime has of this pod.
func (p *pod) cleanUp() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list,
		err := p.client.Runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{cri.LabelPodUID: p.uid}}})
	if err != nil {
		p.t.Errorf("listing sandboxes to clean up: %v", err)
	}
	for _, s := range list.GetItems() {
		_, err := p.client.Runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: s.GetId()})
		if err != nil {
			p.t.Errorf("removing sandbox %s: %v", s.GetId(), err)
		}
	}
}

func (p *pod) run() string {
	p.t.Helper()
	r, err := p.client.Runtime.RunPodSandbox(p.ctx(), &runtimeapi.RunPodSandboxRequest{Config: p.config})
	if err != nil {
		p.t.Fatalf("RunPodSandbox: %v", err)
	}
	return r.GetPodSandboxId()
}

// ctx is the test's, with the patience we have for one call.
func (p *pod) ctx() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	return ctx
}

// request is a CreateContainer of a container named name whose process does what words say.
func (p *pod) request(name string, words []string,
	change ...func(*runtimeapi.ContainerConfig)) *runtimeapi.CreateContainerRequest {
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name},
		Image:    &runtimeapi.ImageSpec{Image: p.env.Image},
		Args:     words,
		LogPath:  filepath.Join(name, "0.log"),
		Labels: map[string]string{
			cri.LabelPodUID: p.uid, cri.LabelPodName: p.config.GetMetadata().GetName(), cri.LabelPodNamespace: "test",
			cri.LabelContainerName: name, cri.LabelContainerType: podspec.Main.Label(),
		},
		Linux: &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{
				Pid:     runtimeapi.NamespaceMode_CONTAINER,
				Network: p.config.GetLinux().GetSecurityContext().GetNamespaceOptions().GetNetwork(),
			},
		}},
	}
	for _, c := range change {
		c(config)
	}
	return &runtimeapi.CreateContainerRequest{PodSandboxId: p.sandbox, Config: config, SandboxConfig: p.config}
}

func (p *pod) create(name string, words []string, change ...func(*runtimeapi.ContainerConfig)) string {
	p.t.Helper()
	r, err := p.client.Runtime.CreateContainer(p.ctx(), p.request(name, words, change...))
	if err != nil {
		p.t.Fatalf("CreateContainer %s: %v", name, err)
	}
	return r.GetContainerId()
}

func (p *pod) start(id string) {
	p.t.Helper()
	if _,
		err := p.client.Runtime.StartContainer(p.ctx(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		p.t.Fatalf("StartContainer: %v", err)
	}
}

// up creates and starts.
func (p *pod) up(name string, words []string, change ...func(*runtimeapi.ContainerConfig)) string {
	p.t.Helper()
	id := p.create(name, words, change...)
	p.start(id)
	return id
}

// ready waits until a container that was given the word stdout=ready has its signal handlers: before that a stop signal
// meets the defaults of the language it is written in.
func (p *pod) ready(name string, n int) {
	p.t.Helper()
	p.until("the container's process to be ready", func() bool {
		data, err := os.ReadFile(p.logPath(name, n))
		return err == nil && strings.Contains(string(data), "stdout F ready\n")
	})
}

func (p *pod) status(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	r, err := p.client.Runtime.ContainerStatus(p.ctx(), &runtimeapi.ContainerStatusRequest{ContainerId: id})
	if err != nil {
		p.t.Fatalf("ContainerStatus: %v", err)
	}
	return r.GetStatus()
}

func (p *pod) sandboxState() runtimeapi.PodSandboxState {
	p.t.Helper()
	r, err := p.client.Runtime.PodSandboxStatus(p.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: p.sandbox})
	if err != nil {
		p.t.Fatalf("PodSandboxStatus: %v", err)
	}
	return r.GetStatus().GetState()
}

func (p *pod) stop(id string, seconds int64) {
	p.t.Helper()
	if _, err := p.client.Runtime.StopContainer(p.ctx(), &runtimeapi.StopContainerRequest{ContainerId: id,
		Timeout: seconds}); err != nil {
		p.t.Errorf("StopContainer with timeout %d: %v", seconds, err)
	}
}

func (p *pod) remove(id string) {
	p.t.Helper()
	if _,
		err := p.client.Runtime.RemoveContainer(p.ctx(),
		&runtimeapi.RemoveContainerRequest{ContainerId: id}); err != nil {
		p.t.Errorf("RemoveContainer: %v", err)
	}
}

// ended waits for a container's end.
func (p *pod) ended(id string) *runtimeapi.ContainerStatus {
	p.t.Helper()
	var st *runtimeapi.ContainerStatus
	p.until("the container's end", func() bool {
		st = p.status(id)
		return st.GetState() == runtimeapi.ContainerState_CONTAINER_EXITED
	})
	return st
}

// until polls: what is waited for has no other sign in the CRI.
func (p *pod) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}

func (p *pod) killPause() {
	p.t.Helper()
	kill := p.env.KillPause
	if kill == nil {
		kill = p.killByStatus
	}
	if err := kill(p.sandbox); err != nil {
		p.t.Fatalf("killing the sandbox's process: %v", err)
	}
}

func (p *pod) killByStatus(sandboxID string) error {
	r, err := p.client.Runtime.PodSandboxStatus(p.ctx(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: sandboxID,
		Verbose: true})
	if err != nil {
		return err
	}
	var info struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal([]byte(r.GetInfo()["info"]), &info); err != nil || info.PID <= 1 {
		return fmt.Errorf("no pid in the sandbox's info %q (%v)", r.GetInfo()["info"], err)
	}
	return syscall.Kill(info.PID, syscall.SIGKILL)
}

// pidMode is a change to a container's PID namespace.
func pidMode(mode runtimeapi.NamespaceMode, target string) func(*runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) {
		o := c.GetLinux().GetSecurityContext().GetNamespaceOptions()
		o.Pid, o.TargetId = mode, target
	}
}

func sandboxPID(mode runtimeapi.NamespaceMode) func(*runtimeapi.PodSandboxConfig) {
	return func(c *runtimeapi.PodSandboxConfig) {
		c.GetLinux().GetSecurityContext().GetNamespaceOptions().Pid = mode
	}
}

func attempt(n uint32) func(*runtimeapi.ContainerConfig) {
	return func(c *runtimeapi.ContainerConfig) {
		c.Metadata.Attempt = n
		c.LogPath = filepath.Join(c.GetMetadata().GetName(), fmt.Sprint(n)+".log")
	}
}

// entry is the command that a container of Env.Image runs, for exec.
func entry(words ...string) []string { return append([]string{"/prog"}, words...) }

// namespace asks a running container which PID namespace it is in.
func (p *pod) namespace(id string) string {
	p.t.Helper()
	r, err := p.client.ExecSync(p.ctx(), id, entry("show=pidns", "run_for=0s"), patience)
	if err != nil || r.ExitCode != 0 {
		p.t.Fatalf("asking for the PID namespace: %v, exit code %d: %s", err, r.ExitCode, r.Stderr)
	}
	return strings.TrimSpace(string(r.Stdout))
}
