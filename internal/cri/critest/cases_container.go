// SPDX-License-Identifier: Apache-2.0

package critest

import (
	"context"
	"sync"
	"testing"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

func containerCases() []Case {
	return []Case{
		{"a container is created, runs, ends, is removed", testContainerLife},
		{"exit code 0 is Completed, any other Error", testExitReasons},
		{"calls on what is gone do not fail", testGone},
		{"a container's name and attempt are reserved", testContainerName},
		{"of two creates at once one wins", testCreateRace},
		{"an image that is not there is an error", testNoImage},
		{"what cannot be started has ended", testStartError},
		{"stop waits, then kills", testStopKills},
		{"stop with no time kills at once", testStopNow},
		{"a second stop with less time is obeyed", testStopShorter},
		{"a stop that is given up leaves the container", testStopGivenUp},
		{"a running container can be removed", testRemoveRunning},
		{"resources of a running container change", testResize},
		{"lists filter by label, sandbox and state", testFilters},
	}
}

func testContainerLife(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.create("main", []string{"stdout=ready"}, attempt(3), func(c *runtimeapi.ContainerConfig) {
		c.Annotations = map[string]string{cri.AnnotationRestartCount: "3"}
	})
	st := p.status(id)
	if st.GetState() != runtimeapi.ContainerState_CONTAINER_CREATED || st.GetCreatedAt() <= 0 ||
		st.GetStartedAt() != 0 || st.GetFinishedAt() != 0 {
		t.Errorf("created: %v", st)
	}
	if st.GetMetadata().GetAttempt() != 3 || st.GetMetadata().GetName() != "main" ||
		st.GetAnnotations()[cri.AnnotationRestartCount] != "3" ||
		st.GetLabels()[cri.LabelContainerName] != "main" || st.GetImageRef() == "" || st.GetLogPath() == "" {
		t.Errorf("created: %v", st)
	}
	p.start(id)
	st = p.status(id)
	if st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING || st.GetStartedAt() < st.GetCreatedAt() ||
		st.GetFinishedAt() != 0 {
		t.Errorf("running: %v", st)
	}
	if _,
		err := p.client.Runtime.StartContainer(p.ctx(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("a running container was started again")
	}
	p.ready("main", 3)
	p.stop(id, 20)
	st = p.status(id) // stopped means: the status says so when the call has returned
	if st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || st.GetExitCode() != 143 ||
		st.GetReason() != "Error" || st.GetFinishedAt() < st.GetStartedAt() {
		t.Errorf("stopped: %v", st)
	}
	if _,
		err := p.client.Runtime.StartContainer(p.ctx(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); err == nil {
		t.Error("an ended container was started again")
	}
	p.stop(id, 20)
	p.remove(id)
	if _,
		err := p.client.Runtime.ContainerStatus(p.ctx(),
		&runtimeapi.ContainerStatusRequest{ContainerId: id}); !cri.NotFound(err) {
		t.Errorf("status of a removed container: %v, want NotFound", err)
	}
}

func testExitReasons(t *testing.T, e Env) {
	p := newPod(t, e)
	for _, tc := range []struct {
		name, word string
		code       int32
		reason     string
	}{{"good", "exit_code=0", 0, "Completed"}, {"bad", "exit_code=3", 3, "Error"}} {
		st := p.ended(p.up(tc.name, []string{"run_for=0s", tc.word}))
		// A process that ends at once may be seen to end before its start was written down: containerd stamps the two
		// in different goroutines.
		raced := int64(time.Second)
		if st.GetExitCode() != tc.code || st.GetReason() != tc.reason || st.GetFinishedAt()+raced < st.GetStartedAt() ||
			st.GetStartedAt() == 0 {
			t.Errorf("%s: %v", tc.name, st)
		}
	}
}

func testGone(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.create("main", nil)
	p.stop(id, 1) // created, never started
	p.remove(id)
	p.remove(id)
	p.stop(id, 1)
	if _,
		err := p.client.Runtime.StartContainer(p.ctx(),
		&runtimeapi.StartContainerRequest{ContainerId: id}); !cri.NotFound(err) {
		t.Errorf("starting what is gone: %v, want NotFound", err)
	}
}

func testContainerName(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"run_for=0s"})
	p.ended(id)
	if _, err := p.client.Runtime.CreateContainer(p.ctx(), p.request("main", nil)); !cri.AlreadyExists(err) {
		t.Errorf("the same attempt twice: %v, want an error that cri.AlreadyExists knows", err)
	}
	p.create("main", nil, attempt(1))
	p.remove(id)
	p.create("main", nil) // free again
}

func testCreateRace(t *testing.T, e Env) {
	p := newPod(t, e)
	const n = 4
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = p.client.Runtime.CreateContainer(t.Context(), p.request("main", nil)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else if !cri.AlreadyExists(err) {
			t.Errorf("a loser got %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d creates of one name won", won, n)
	}
}

func testNoImage(t *testing.T, e Env) {
	p := newPod(t, e)
	_, err := p.client.Runtime.CreateContainer(p.ctx(), p.request("main", nil, func(c *runtimeapi.ContainerConfig) {
		c.Image = &runtimeapi.ImageSpec{Image: "conformance.test/no/such:image"}
	}))
	if !cri.NotFound(err) {
		t.Errorf("CreateContainer without its image: %v, want NotFound", err)
	}
	st,
		err := p.client.Images.ImageStatus(p.ctx(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: "conformance.test/no/such:image"}})
	if err != nil || st.GetImage() != nil {
		t.Errorf("ImageStatus of no image: %v, %v; want neither", st, err)
	}
	st,
		err = p.client.Images.ImageStatus(p.ctx(),
		&runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: e.Image}})
	if err != nil || st.GetImage().GetId() == "" {
		t.Errorf("ImageStatus: %v, %v", st, err)
	}
}

func testStartError(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.create("main", []string{"start_error=no such file"},
		func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/no/such/file"} })
	_, err := p.client.Runtime.StartContainer(p.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id})
	if err == nil {
		t.Fatal("a program that is not there was started")
	}
	st := p.status(id)
	if st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED || st.GetExitCode() != 128 ||
		st.GetReason() != "StartError" ||
		st.GetMessage() == "" || st.GetFinishedAt() == 0 || st.GetStartedAt() != 0 {
		t.Errorf("status: %v", st)
	}
	p.remove(id)
}

func testStopKills(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"ignore_sigterm=true", "stdout=ready"})
	p.ready("main", 0)
	began := time.Now()
	p.stop(id, 1)
	if took := time.Since(began); took < time.Second {
		t.Errorf("killed after %s, before its second was over", took)
	}
	if st := p.status(id); st.GetExitCode() != 137 || st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("status: %v", st)
	}
}

func testStopNow(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", nil)
	p.stop(id, 0)
	if st := p.status(id); st.GetExitCode() != 137 || st.GetState() != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("status: %v", st)
	}
}

func testStopShorter(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"ignore_sigterm=true", "stdout=ready"})
	p.ready("main", 0)
	began := time.Now()
	var wg sync.WaitGroup
	wg.Go(func() { p.stop(id, 25) })
	time.Sleep(200 * time.Millisecond) // the order of the two calls does not matter, but the usual one is this
	p.stop(id, 1)
	wg.Wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopped after %s though the second call gave it 1 s", took)
	}
	if st := p.status(id); st.GetExitCode() != 137 {
		t.Errorf("exit code %d", st.GetExitCode())
	}
}

func testStopGivenUp(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"ignore_sigterm=true", "stdout=ready"})
	p.ready("main", 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := p.client.Runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id,
		Timeout: 25}); !cri.Cancelled(err) {
		t.Errorf("a stop given up: %v, want an error that cri.Cancelled knows", err)
	}
	if st := p.status(id); st.GetState() != runtimeapi.ContainerState_CONTAINER_RUNNING {
		t.Errorf("giving up the call killed the container: %v", st)
	}
	p.stop(id, 0)
}

func testRemoveRunning(t *testing.T, e Env) {
	p := newPod(t, e)
	id := p.up("main", []string{"ignore_sigterm=true"})
	p.remove(id)
	if _,
		err := p.client.Runtime.ContainerStatus(p.ctx(),
		&runtimeapi.ContainerStatusRequest{ContainerId: id}); !cri.NotFound(err) {
		t.Errorf("status of a removed container: %v, want NotFound", err)
	}
}

func testFilters(t *testing.T, e Env) {
	a, b := newPod(t, e), newPod(t, e)
	running, created, other := a.up("running", nil), a.create("created", nil), b.create("created", nil)
	list := func(f *runtimeapi.ContainerFilter) map[string]bool {
		t.Helper()
		r, err := a.client.Runtime.ListContainers(a.ctx(), &runtimeapi.ListContainersRequest{Filter: f})
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, c := range r.GetContainers() {
			ids[c.GetId()] = true
			if c.GetPodSandboxId() == "" || c.GetLabels()[cri.LabelPodUID] == "" {
				t.Errorf("listed without sandbox or labels: %v", c)
			}
		}
		return ids
	}
	check := func(what string, got map[string]bool, want ...string) {
		t.Helper()
		for _, id := range want {
			if !got[id] {
				t.Errorf("%s: container missing", what)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d containers, want %d", what, len(got), len(want))
		}
	}
	check("by sandbox", list(&runtimeapi.ContainerFilter{PodSandboxId: a.sandbox}), running, created)
	check("by label", list(&runtimeapi.ContainerFilter{LabelSelector: map[string]string{cri.LabelPodUID: b.uid}}),
		other)
	check("by two labels", list(&runtimeapi.ContainerFilter{LabelSelector: map[string]string{cri.LabelPodUID: a.uid,
		cri.LabelContainerName: "created"}}), created)
	check("by state", list(&runtimeapi.ContainerFilter{PodSandboxId: a.sandbox,
		State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}), running)
	check("by an unknown label", list(&runtimeapi.ContainerFilter{LabelSelector: map[string]string{"no": "such"}}))
	boxes,
		err := a.client.Runtime.ListPodSandbox(a.ctx(),
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: map[string]string{cri.LabelPodUID: a.uid}}})
	if err != nil || len(boxes.GetItems()) != 1 || boxes.GetItems()[0].GetId() != a.sandbox {
		t.Errorf("sandboxes by label: %v, %v", boxes, err)
	}
}
