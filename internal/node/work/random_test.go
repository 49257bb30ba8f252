// SPDX-License-Identifier: Apache-2.0

package work_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wherryproject/wherry/internal/cri/critest"
	"github.com/wherryproject/wherry/internal/cri/critest/script"
	"github.com/wherryproject/wherry/internal/node/allot"
	"github.com/wherryproject/wherry/internal/podspec"
)

var (
	seeds = flag.Int("seeds", 250, "how many random histories to run")
	seed  = flag.Int64("seed", -1, "the one history to run")
)

// TestRandomHistories lets random pods live through random misfortune: agents that die at any operation, calls that fail
// before or after they took effect, a runtime and an API server that come and go, reboots, crashes, edits, a deletion. What must
// always hold is held by the spy on every call; when all is calm again the pod must do what its policy says, and when it is
// deleted nothing may be left (PL-02, PL-04, PL-10, SC-02, SC-04, SC-05, SC-19,
// SC-20). A debug container comes, ends and is used again on the way: each of its runs starts exactly once (EC-10, EC-11, DC-06). What
// is set aside for the pod changes, and in the end everything is given just that (PL-14).
func TestRandomHistories(t *testing.T) {
	first, last := int64(1), int64(*seeds)
	if *seed >= 0 {
		first, last = *seed, *seed
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	next := make(chan int64)
	for range 4 {
		wg.Go(func() {
			for n := range next {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { newHistory(t, n).run() })
				})
			}
		})
	}
	for n := first; n <= last; n++ {
		next <- n
	}
	close(next)
}

// history is one seed's.
type history struct {
	*sim
	rng  *rand.Rand
	seed int64
	kill chan struct{} // something is to happen now, while an operation runs

	hmu   sync.Mutex
	calls map[string]int // made, by method and container
	evil  uint64         // of 1000 calls fail
	calm  bool
	// resizes is how often the pod might have been resized.
	resizes int
	opsTo   int // operations until something happens in the middle of one; 0 for never
}

func newHistory(t *testing.T, n int64) *history {
	h := &history{rng: rand.New(rand.NewPCG(uint64(n), 7)), seed: n, kill: make(chan struct{}, 1), calls: map[string]int{}}
	h.opsTo = h.rng.IntN(12)
	h.sim = newSim(t, admitted(h.pod()))
	h.sim.actor = h.actor
	h.sim.begins = h.begins
	h.evil = []uint64{0, 0, 20, 80}[h.rng.IntN(4)]
	h.spy.bedevil(h.mischief)
	h.fake.DetachCancelled(h.rng.IntN(2) == 0)
	lag := time.Duration(1+h.rng.IntN(400)) * time.Millisecond
	h.api.lag = func() time.Duration { return lag }
	for _, m := range []string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "StopPodSandbox", "RemovePodSandbox"} {
		h.fake.Delay(m, time.Duration(h.rng.IntN(1500))*time.Millisecond)
	}
	return h
}

// pod is a random one of one to four containers.
func (h *history) pod() *corev1.Pod {
	p := &corev1.Pod{}
	policies := []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}
	p.Spec.RestartPolicy = policies[h.rng.IntN(3)]
	grace := []int64{1, 5, 30}[h.rng.IntN(3)]
	p.Spec.TerminationGracePeriodSeconds = &grace
	if h.rng.IntN(10) == 0 {
		d := int64(10 + h.rng.IntN(200))
		p.Spec.ActiveDeadlineSeconds = &d
	}
	if h.rng.IntN(6) == 0 {
		yes := true
		p.Spec.ShareProcessNamespace = &yes
	}
	always := corev1.ContainerRestartPolicyAlways
	mains := 1 + h.rng.IntN(2)
	for i := range h.rng.IntN(5 - mains) {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i), Image: "img"}
		if h.rng.IntN(3) == 0 {
			c.Name, c.RestartPolicy = fmt.Sprintf("s%d", i), &always
			h.attend(&c)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for i := range mains {
		c := corev1.Container{Name: fmt.Sprintf("m%d", i), Image: "img"}
		h.attend(&c)
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	if h.dice("restarts all")%4 == 0 { // PL-28: the exit codes of misfortune
		c, own := &p.Spec.Containers[0], corev1.ContainerRestartPolicy(p.Spec.RestartPolicy)
		c.RestartPolicy, c.RestartPolicyRules = &own, []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{139, 2}}}}
	}
	h.size(p, 0)
	return p
}

// size gives some containers of a pod a size, the n-th, and some of those a policy that has them started again for another one.
func (h *history) size(p *corev1.Pod, n int) {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if h.dice("sized", c.Name)%2 == 0 {
				continue
			}
			cpu := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(100+int64(h.dice("size", c.Name, n)%3)*100, resource.DecimalSI)}
			c.Resources = corev1.ResourceRequirements{Requests: cpu, Limits: cpu}
			if h.dice("by restart", c.Name)%3 == 0 && c.Name[0] != 'i' && p.Spec.RestartPolicy != corev1.RestartPolicyNever {
				c.ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceCPU, RestartPolicy: corev1.RestartContainer}}
			}
		}
	}
}

// attend gives a container some probes, which say yes, and some hooks, which take their time. What is asked of the runtime for
// them may fail like all else.
func (h *history) attend(c *corev1.Container) {
	d := h.dice("attends", c.Name)
	part := func(n uint64) uint64 { v := d % n; d /= n; return v }
	exec := func(seconds uint64) *corev1.ExecAction {
		return &corev1.ExecAction{Command: []string{fmt.Sprintf("run_for=%ds", seconds)}}
	}
	probe := func() *corev1.Probe {
		return &corev1.Probe{PeriodSeconds: int32(10 + 10*part(10)), TimeoutSeconds: 5, ProbeHandler: corev1.ProbeHandler{Exec: exec(part(3))}}
	}
	if part(3) == 0 {
		c.StartupProbe = probe()
	}
	if part(3) == 0 {
		c.ReadinessProbe = probe()
	}
	if part(4) == 0 {
		c.LivenessProbe = probe()
	}
	hook := func() *corev1.LifecycleHandler {
		return &corev1.LifecycleHandler{Exec: exec([]uint64{0, 2, 20}[part(3)])}
	}
	if part(4) == 0 {
		c.Lifecycle = &corev1.Lifecycle{PostStart: hook()}
	}
	if part(4) == 0 {
		c.Lifecycle = &corev1.Lifecycle{PreStop: hook()}
	}
}

// dice is a number that depends on the seed and the words alone, whatever goroutine asks first.
func (h *history) dice(words ...any) uint64 {
	f := fnv.New64a()
	_, _ = fmt.Fprintln(f, append([]any{h.seed}, words...)...)
	return rand.New(rand.NewPCG(f.Sum64(), 1)).Uint64()
}

// actor says what an attempt of a container does. The fake's lock is held.
func (h *history) actor(i critest.Info) script.Script {
	h.hmu.Lock()
	calm := h.calm
	h.hmu.Unlock()
	s := script.Script{StopCode: script.DefaultStopCode}
	isInit := strings.HasPrefix(i.Container, "i")
	if isInit {
		s.Ends, s.RunFor = true, time.Second
	}
	if calm {
		return s
	}
	d := h.dice("acts", i.Container, i.Attempt)
	part := func(n uint64) uint64 { v := d % n; d /= n; return v }
	s.IgnoreStop = part(5) == 0
	s.StopDelay = []time.Duration{0, time.Second, 8 * time.Second}[part(3)]
	switch part(8) {
	case 0:
		s.Ends, s.RunFor, s.ExitCode = true, time.Duration(part(20_000))*time.Millisecond, int32(1+part(3))
	case 1:
		s.Ends, s.RunFor = true, time.Duration(part(20_000))*time.Millisecond
	case 2:
		s.Ends, s.RunFor, s.ExitCode = true, 0, 1
	case 3:
		if part(3) == 0 {
			s.StartError = "exec: no such file"
		}
	}
	return s
}

// mischief fails some calls.
func (h *history) mischief(method, container string) (error, bool) {
	h.hmu.Lock()
	defer h.hmu.Unlock()
	if h.calm || h.evil == 0 {
		return nil, false
	}
	key := method + container
	h.calls[key]++
	d := h.dice("fails", key, h.calls[key])
	if d%1000 >= h.evil {
		return nil, false
	}
	return errBroken(), d/1000%2 == 0
}

// begins is told of each operation that starts.
func (h *history) begins() {
	h.hmu.Lock()
	defer h.hmu.Unlock()
	if h.opsTo > 0 {
		if h.opsTo--; h.opsTo == 0 {
			select {
			case h.kill <- struct{}{}:
			default:
			}
		}
	}
}

func (h *history) run() {
	defer func() {
		if h.agent != nil {
			h.die()
		}
		time.Sleep(5 * time.Minute) // calls that were given up go on to their end
		if len(h.spy.faults) > 0 {
			h.t.Errorf("seed %d (run it with -seed %d): %s\n%s", h.seed, h.seed, strings.Join(h.spy.faults, "\n"), h.trace)
		}
	}()
	h.live()
	for range h.rng.IntN(14) {
		select {
		case <-time.After(time.Duration(h.rng.IntN(25_000)) * time.Millisecond):
		case <-h.kill:
			h.strike()
			continue
		}
		if len(h.spy.faults) > 0 {
			return
		}
		h.misfortune()
	}
	h.settle()
	if p := h.api.get(); p != nil && p.DeletionTimestamp == nil {
		time.Sleep(40 * time.Minute)
		h.checkCalm()
		h.trace.add(byScript, "------- delete")
		h.api.delete([]int64{-1, -1, 0, 3}[h.rng.IntN(4)])
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	if p := h.api.get(); p != nil {
		h.spy.fault("ten minutes after its deletion the record is still there: %s", summary(&p.Status))
	}
	if left := h.left(); left != "" {
		h.spy.fault("ten minutes after the deletion something is left:%s", left)
	}
	if h.agent.set.Has(h.uid) {
		h.spy.fault("the worker of a pod that is gone has not ended")
	}
}

// strike is what happens in the middle of an operation.
func (h *history) strike() {
	time.Sleep(time.Duration(h.rng.IntN(300)) * time.Millisecond)
	switch h.rng.IntN(6) {
	case 0:
		h.trace.add(byScript, "------- delete in the middle of an operation")
		h.api.delete([]int64{-1, -1, 0, 3}[h.rng.IntN(4)])
	case 1:
		h.trace.add(byScript, "------- kill pause in the middle of an operation")
		if ids, _ := h.fake.Sandboxes(); len(ids) > 0 {
			_ = h.fake.KillPause(ids[len(ids)-1])
		}
	default:
		h.trace.add(byScript, "------- the agent dies in the middle of an operation")
		h.die()
		h.soon(20)
		h.live()
	}
}

// soon waits for up to so many seconds.
func (h *history) soon(seconds int) {
	time.Sleep(time.Duration(h.rng.IntN(seconds*1000)) * time.Millisecond)
}

// misfortune is one thing that goes wrong, or that somebody does.
func (h *history) misfortune() {
	say := func(format string, args ...any) { h.trace.add(byScript, "------- "+format, args...) }
	switch n := h.rng.IntN(23); n {
	case 0, 1, 2:
		name := h.order[h.rng.IntN(len(h.order))]
		code := []int32{0, 1, 139}[h.rng.IntN(3)]
		say("exit %s %d", name, code)
		_ = h.fake.Exit(h.find(name), code)
	case 3:
		ids, _ := h.fake.Sandboxes()
		if len(ids) > 0 {
			say("kill pause")
			_ = h.fake.KillPause(ids[len(ids)-1])
		}
	case 4, 5:
		say("agent dies")
		h.die()
		h.soon(30)
		say("agent starts")
		h.live()
	case 6, 7, 8, 9:
		h.hmu.Lock()
		h.opsTo = 1 + h.rng.IntN(4)
		h.hmu.Unlock()
	case 10:
		say("runtime restarts")
		h.fake.Restart()
	case 11:
		say("runtime down")
		h.fake.Down()
		h.soon(20)
		say("runtime up")
		h.fake.Up()
	case 12:
		say("reboot")
		h.die()
		h.spy.rebooted()
		if h.rng.IntN(2) == 0 {
			h.fake.PowerCycle()
		} else {
			h.fake.Reboot()
		}
		h.soon(20)
		say("agent starts")
		h.live()
	case 13, 14:
		say("api down")
		h.api.power(false)
		h.soon(60)
		say("api up")
		h.api.power(true)
	case 15:
		say("api answers too late")
		h.api.answer(errors.New("http2: client connection lost"))
		h.soon(20)
		h.api.answer(nil)
	case 16:
		image := fmt.Sprintf("img%d", h.rng.IntN(3))
		say("image m0 %s", image)
		h.api.edit(func(p *corev1.Pod) { p.Spec.Containers[0].Image = image })
		if h.resizes++; h.resizes%2 == 1 {
			say("resize")
			h.api.edit(func(p *corev1.Pod) { h.size(p, h.resizes) })
		}
	case 17:
		say("pulls fail")
		for _, image := range []string{"img", "img0", "img1", "img2"} {
			h.fake.Publish(image, critest.Remote{PullError: errors.New("500 Internal Server Error")})
		}
	case 18:
		say("pulls are slow")
		for _, image := range []string{"img", "img0", "img1", "img2"} {
			h.fake.Publish(image, critest.Remote{PullDelay: time.Duration(h.rng.IntN(20)) * time.Second})
		}
	case 20, 21:
		say("debug")
		h.debugs()
	case 22:
		say("stop debug")
		_ = h.stopDebug("d0")
	case 19:
		if h.rng.IntN(2) == 0 {
			say("delete")
			h.api.delete([]int64{-1, -1, 0, 3}[h.rng.IntN(4)])
		}
	}
}

// settle ends all misfortune.
func (h *history) settle() {
	h.trace.add(byScript, "------- all is calm")
	h.hmu.Lock()
	h.calm, h.opsTo = true, 0
	h.hmu.Unlock()
	for _, image := range []string{"img", "img0", "img1", "img2"} {
		h.fake.Publish(image, critest.Remote{})
	}
	select {
	case <-h.kill:
	default:
	}
}

// checkCalm holds what is stored, after a long calm, against the truth and against the pod's policy.
func (h *history) checkCalm() {
	p := h.api.get()
	if p == nil {
		return
	}
	newest := map[string]found{}
	for _, c := range h.statuses() {
		if old, ok := newest[c.name()]; !ok || c.GetMetadata().GetAttempt() > old.GetMetadata().GetAttempt() {
			newest[c.name()] = c
		}
	}
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if !over && p.Status.Phase != corev1.PodRunning {
		h.spy.fault("after a long calm the pod is %s", summary(&p.Status))
	}
	h.checkDebug(p)
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
		for i := range list {
			c := &list[i]
			runs := newest[c.Name].ContainerStatus != nil && newest[c.Name].running()
			if runs != (c.State.Running != nil) {
				h.spy.fault("%s is said to be %s, in truth it runs: %v", c.Name, stateOf(c.State), runs)
			}
			ref, _ := podspec.FindContainer(&p.Spec, c.Name)
			if want := allot.Container(p, ref.Container).Shares; runs && ref.Kind != podspec.Ephemeral &&
				newest[c.Name].GetResources().GetLinux().GetCpuShares() != want {
				h.spy.fault("%s is given %v, want %d shares (PL-14)", c.Name, newest[c.Name].GetResources(), want)
			}
			if over && runs {
				h.spy.fault("%s runs in a pod that has ended", c.Name)
			}
			if over || runs || strings.HasPrefix(c.Name, "i") || strings.HasPrefix(c.Name, "d") {
				continue
			}
			done := c.State.Terminated != nil && c.Name[0] == 'm' && (p.Spec.RestartPolicy == corev1.RestartPolicyNever ||
				p.Spec.RestartPolicy == corev1.RestartPolicyOnFailure && c.State.Terminated.ExitCode == 0)
			if !done {
				h.spy.fault("after a long calm %s is %s", c.Name, stateOf(c.State))
			}
		}
	}
}
