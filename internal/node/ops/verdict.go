// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// verdict is a [plan.Verdict] as its file holds it.
type verdict struct {
	Fault string    `json:"fault"`
	Until time.Time `json:"until"`
}

// verdictFile is where the verdict on an attempt of a container is kept, beside its termination log.
func (r *Runner) verdictFile(pod *corev1.Pod, container string, attempt uint32) string {
	return filepath.Join(r.PodsFolder, string(pod.UID), "containers", container,
		strconv.FormatUint(uint64(attempt), 10)+".condemned")
}

// keepVerdict writes down what the container is killed for, before anything is done to it: whatever exit code it
// returns then, and whoever reads that, it has failed (PL-16). The first verdict stays. Where it cannot be written the
// container is stopped all the same: one that fails its probes is not kept running for the sake of its exit code.
func (r *Runner) keepVerdict(t work.Task) {
	if !t.Verdict.Given() {
		return
	}
	name := r.verdictFile(t.Pod, t.Container, t.Attempt)
	if err := writeVerdict(name, t.Verdict); err != nil {
		r.Logger.Warn("cannot record that the container is killed as failed: if it exits with 0 it may count as completed",
			"pod", t.Pod.Namespace+"/"+t.Pod.Name, "container", t.Container, "attempt", t.Attempt, "err", err)
	}
}

// forgetVerdict takes away what an attempt of this number was killed for before: the runtime has lost that one, and
// what is about to be made is another.
func (r *Runner) forgetVerdict(t work.Task) error {
	err := os.Remove(r.verdictFile(t.Pod, t.Container, t.Attempt))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeVerdict makes the file, whole or not at all. Its folder is there since the container was made.
func writeVerdict(name string, v plan.Verdict) error {
	if _, err := os.Lstat(name); err == nil {
		return nil
	}
	data, err := json.Marshal(verdict{v.Fault, v.Until})
	if err != nil {
		return err
	}
	if err := os.WriteFile(name+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// verdictOn reads what an attempt of a container was killed for, if anything.
func (r *Runner) verdictOn(pod *corev1.Pod, c plan.Container) plan.Verdict {
	data, err := os.ReadFile(r.verdictFile(pod, c.Name, c.Attempt))
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Verdict{}
	}
	var v verdict
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		r.Logger.Warn("cannot read why the container was killed: it may count as completed", "pod",
			pod.Namespace+"/"+pod.Name, "container", c.Name, "attempt", c.Attempt, "err", err)
	}
	return plan.Verdict{Fault: v.Fault, Until: v.Until}
}
