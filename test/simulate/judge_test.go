// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// judge holds what happens against what must always hold.
type judge struct {
	truth *cri.Client
	begin time.Time

	mu     sync.Mutex
	faults []string
	never  map[string]bool   // uid/container: must not start again in the same sandbox once it has ended
	runs   map[string]string // uid/sandbox/container of those -> the container's id
}

func (j *judge) fault(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.faults = append(j.faults, fmt.Sprintf("at %.3f s: ", time.Since(j.begin).Seconds())+fmt.Sprintf(format, args...))
}

// started is told of a container that was started, and looks whether it may run.
func (j *judge) started(id string) {
	all, err := j.truth.Runtime.ListContainers(context.Background(), &runtimeapi.ListContainersRequest{})
	if err != nil {
		return // the runtime is down
	}
	name := func(c *runtimeapi.Container) string {
		return c.GetLabels()["io.kubernetes.pod.uid"] + "/" + c.GetMetadata().GetName()
	}
	var it *runtimeapi.Container
	for _, c := range all.GetContainers() {
		if c.GetId() == id {
			it = c
		}
	}
	if it == nil {
		return // ended and removed already
	}
	for _, c := range all.GetContainers() {
		if c.GetId() != id && name(c) == name(it) && c.GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING {
			j.fault("%s runs twice: attempts %d and %d", name(it), c.GetMetadata().GetAttempt(), it.GetMetadata().GetAttempt())
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.never[name(it)] {
		return
	}
	key := it.GetPodSandboxId() + "/" + name(it)
	if other := j.runs[key]; other != "" && other != id {
		j.faults = append(j.faults, fmt.Sprintf("%s was started again (attempt %d) in the same sandbox, though its policy is Never",
			name(it), it.GetMetadata().GetAttempt()))
	}
	j.runs[key] = id
}

// once notes that a container must not start again.
func (j *judge) once(uid, container string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.never[uid+"/"+container] = true
}
