// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// debugging is an API server that notes what it is told, and has a debug container at once.
type debugging struct {
	mu    sync.Mutex
	told  []string
	ended chan ImageEnd
	cases map[string]error // refusals, by pod
	pods  map[string]*corev1.Pod
}

func (d *debugging) tell(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, fmt.Sprintf(format, args...))
}

func (d *debugging) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.told...)
}

func (d *debugging) Entered(_ context.Context, pod *corev1.Pod, container string, command []string) error {
	d.tell("exec %s/%s %v", pod.Name, container, command)
	return nil
}

func (d *debugging) Debug(_ context.Context, name string, s Session) (*corev1.Pod, error) {
	d.tell("debug %s %+v", name, s)
	if err := d.cases[name]; err != nil {
		return nil, err
	}
	pod := d.pods[name].DeepCopy()
	pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: s.Name},
	})
	return pod, nil
}

func (d *debugging) ImageAllowed(_ context.Context, pod *corev1.Pod) error { return d.cases[pod.Name] }

func (d *debugging) ImageExec(_ context.Context, pod *corev1.Pod, run ImageRun) (func(ImageEnd), error) {
	d.tell("image %s %+v", pod.Name, run)
	return func(end ImageEnd) { d.ended <- end }, nil
}
