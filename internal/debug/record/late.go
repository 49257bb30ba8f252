// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/wherryproject/wherry/internal/debug/debugrun"
	"github.com/wherryproject/wherry/internal/podspec"
)

// A debug container is stored with its pod, and its record after that. A server that is killed in between leaves the
// one without the other; the next one writes the record then: late rather than never (DC-05). One that a client deleted
// comes back too, as long as the pod has the container: who has entered a pod cannot be made to be forgotten before the
// pod is.

// mostRecords is the number of records in a namespace from which on old ones are deleted, see package bookkeeping: one
// that is missing there may have been, and is not written anew.
const mostRecords = 1000

// lateRecord is a record that is missing.
type lateRecord struct {
	pod       *corev1.Pod
	container *corev1.EphemeralContainer
	run       int
	user      string
}

// unknownUser is on record where nobody wrote down who added a debug container.
const unknownUser = "unknown"

// missingRecords finds the debug containers that are in a pod and not on record. Those that were added since this
// server started are left out: their records are on their way. Earlier versions of this program named the user only in
// the words of the condition Tainted, which describe the last one and are not for cutting up: who added their
// containers is unknown here, and is in the audit log. (Pure.)
func missingRecords(pods []corev1.Pod, kept []debugrun.DebugRun, started time.Time) (out []lateRecord) {
	type key struct {
		pod       types.UID
		container string
		run       int
	}
	have, number := map[key]bool{}, map[string]int{}
	for i := range kept {
		s := &kept[i].Spec
		have[key{s.Pod.UID, s.Container, int(s.Run)}] = true
		number[kept[i].Namespace]++
	}
	for i := range pods {
		p := &pods[i]
		if len(p.Spec.EphemeralContainers) == 0 || number[p.Namespace] >= mostRecords {
			continue
		}
		runs, additions := podspec.DebugRunsOf(p), podspec.DebugAdditionsOf(p)
		for j := range p.Spec.EphemeralContainers {
			c := &p.Spec.EphemeralContainers[j]
			r := lateRecord{pod: p, container: c, run: runs[c.Name].Run, user: unknownUser}
			if added, known := additions[c.Name]; known {
				if r.user = added.By; !added.At.Time.Before(started.Truncate(time.Second)) {
					continue
				}
			}
			if !have[key{p.UID, c.Name, r.run}] {
				out = append(out, r)
			}
		}
	}
	return out
}

// late writes the records that a former server was killed before it could write.
func (r *Recorder) late(ctx context.Context, started time.Time) error {
	pods, err := r.pods.List(r.pods.Within(ctx, ""), &metainternal.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	kept, err := r.records.List(r.records.Within(ctx, ""), &metainternal.ListOptions{})
	if err != nil {
		return err
	}
	podList, ok1 := pods.(*corev1.PodList)
	keptList, ok2 := kept.(*debugrun.DebugRunList)
	if !ok1 || !ok2 {
		return nil
	}
	for _, m := range missingRecords(podList.Items, keptList.Items, started) {
		ctx := request.WithUser(ctx, &user.DefaultInfo{Name: m.user})
		if _, err := r.record(ctx, m.pod, debugrun.DebugRunSpec{
			Kind: debugrun.EphemeralContainer, Container: m.container.Name, Run: int32(m.run), Image: m.container.Image,
			Command: m.container.Command, Args: m.container.Args, Target: m.container.TargetContainerName,
		}, nil); err != nil {
			return err
		}
		r.log.Warn("recorded a debug container that was missing because a server was killed", "pod",
			m.pod.Namespace+"/"+m.pod.Name, "container", m.container.Name, "user", m.user)
	}
	return nil
}
