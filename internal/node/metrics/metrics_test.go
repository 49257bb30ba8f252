// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/wherryproject/wherry/internal/node/plan"
	"github.com/wherryproject/wherry/internal/node/work"
)

// page is what is served, by series.
func page(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	out := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if at := strings.LastIndex(line, " "); at > 0 && line[0] != '#' {
			out[line[:at]] = strings.TrimSpace(line[at+1:])
		}
	}
	return out
}

// expect compares series with what they should be; "" is none.
func expect(t *testing.T, m *Metrics, want map[string]string) {
	t.Helper()
	got := page(t, m)
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %q, want %q", series, got[series], value)
		}
	}
}

func quiet() *Metrics { return New(func() Now { return Now{} }) }

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func after(d time.Duration) time.Time { return began.Add(d) }

// shape is a pod with an init container, a sidecar, a main and an ephemeral container.
func shape() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(began)}}
	p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "proxy", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
	return p
}

// do tells of an operation from its beginning to its end.
func do(m *Metrics, pod *corev1.Pod, op plan.Op, from, to time.Duration, err error) {
	m.Trace(pod, work.Event{At: after(from), Op: op})
	m.Trace(pod, work.Event{At: after(to), Op: op, Returned: true, Err: err})
}

type coded struct {
	error
	reason string
}

func (c coded) Reason() string { return c.reason }

// SC-23, EC-26: starts of containers are counted by kind, a sidecar as an init container; failures with their reason.
func TestStartedContainers(t *testing.T) {
	m, p, no := quiet(), shape(), errors.New("no")
	m.Arrived(p, began)
	start := func(name string, verb plan.Verb, err error) {
		do(m, p, plan.Op{Verb: verb, Container: name}, 0, 1, err)
	}
	start("init", plan.StartContainer, nil)
	start("proxy", plan.StartContainer, nil)
	start("proxy", plan.StartContainer, coded{no, "RunContainerError"})
	start("main", plan.StartContainer, coded{no, "CreateContainerConfigError"})
	start("main", plan.StartContainer, no)
	start("main", plan.PullImage, nil)
	start("main", plan.PullImage, coded{no, "ErrImageNeverPull"})
	start("main", plan.PullImage, coded{no, "a reason made up by registry 7 at 12:03"})
	start("main", plan.PostStart, no)
	start("debug", plan.StartContainer, nil)
	m.Trace(p, work.Event{Op: plan.Op{Verb: plan.StartContainer, Container: "init"}, Returned: true, Cancelled: true, Err: no})
	const total, failed = "kubelet_started_containers_total", "kubelet_started_containers_errors_total"
	expect(t, m, map[string]string{
		total + `{container_type="init_container"}`:                                            "3",
		total + `{container_type="container"}`:                                                 "4",
		total + `{container_type="ephemeral_container"}`:                                       "1",
		failed + `{code="RunContainerError",container_type="init_container"}`:                  "1",
		failed + `{code="CreateContainerConfigError",container_type="container"}`:              "1",
		failed + `{code="CreateContainerError",container_type="container"}`:                    "1",
		failed + `{code="ErrImageNeverPull",container_type="container"}`:                       "1",
		failed + `{code="ErrImagePull",container_type="container"}`:                            "1",
		failed + `{code="PostStartHookError",container_type="container"}`:                      "1",
		`wherry_operation_errors_total{operation="StartContainer"}`:                            "3",
		`wherry_operation_duration_seconds_count{operation="StartContainer"}`:                  "6",
		failed + `{code="a reason made up by registry 7 at 12:03",container_type="container"}`: "",
	})
}

// SC-23: every run of a container that ends is counted once, whether its status is seen to end or the next run has begun by then; what
// an agent finds as ended it has not seen end.
func TestTerminatedContainers(t *testing.T) {
	m, p := quiet(), shape()
	ended := func(id string, code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: id, ExitCode: code, Reason: reason}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	status := func(init, now, last corev1.ContainerState) *corev1.PodStatus {
		return &corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{{Name: "init", State: init}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "main", State: now, LastTerminationState: last}}}
	}
	none := corev1.ContainerState{}
	m.Arrived(p, began)
	was := status(ended("i", 0, "Completed"), none, none) // from an earlier agent
	for _, now := range []*corev1.PodStatus{
		status(ended("i", 0, "Completed"), running, none),
		status(ended("i", 0, "Completed"), ended("a", 139, "Error"), none),
		status(ended("i", 0, "Completed"), none, ended("a", 139, "Error")),
		status(ended("i", 0, "Completed"), running, ended("a", 139, "Error")),
		status(ended("i", 0, "Completed"), running, ended("b", 139, "Error")), // which went by between two looks
		status(ended("j", 3, "Error"), ended("c", 137, "OOMKilled"), ended("b", 139, "Error")),
		status(ended("j", 3, "Error"), ended("", 137, "ContainerStatusUnknown"), ended("b", 139, "Error")),
	} {
		m.StatusChanged(p, was, now, began)
		was = now
	}
	const total = "kubelet_terminated_containers_total"
	expect(t, m, map[string]string{
		total + `{container_type="container",exit_code="139",reason="Error"}`:                  "2",
		total + `{container_type="container",exit_code="137",reason="OOMKilled"}`:              "1",
		total + `{container_type="init_container",exit_code="3",reason="Error"}`:               "1",
		total + `{container_type="init_container",exit_code="0",reason="Completed"}`:           "",
		total + `{container_type="container",exit_code="137",reason="ContainerStatusUnknown"}`: "",
	})
}

func TestStartedPods(t *testing.T) {
	m, p := quiet(), shape()
	m.Arrived(p, began)
	m.Arrived(p, began)
	do(m, p, plan.Op{Verb: plan.RunSandbox}, 0, 1, errors.New("no address left"))
	do(m, p, plan.Op{Verb: plan.RunSandbox, Attempt: 1}, 0, 1, nil)
	expect(t, m, map[string]string{"kubelet_started_pods_total": "2", "kubelet_started_pods_errors_total": "1",
		"kubelet_containers_per_pod_count_count": "1", "kubelet_containers_per_pod_count_sum": "1"})
}

// PL-36: pods with a user namespace of their own are counted beside all pods, as are their sandboxes that could not be
// made; those of the others are not.
func TestStartedUserNamespacedPods(t *testing.T) {
	m, p := quiet(), shape()
	p.Spec.HostUsers = new(false)
	other := shape()
	other.UID, other.Spec.HostUsers = "other", new(true)
	m.Arrived(p, began)
	m.Arrived(other, began)
	do(m, p, plan.Op{Verb: plan.RunSandbox}, 0, 1, errors.New("no user left"))
	do(m, p, plan.Op{Verb: plan.RunSandbox, Attempt: 1}, 0, 1, nil)
	do(m, other, plan.Op{Verb: plan.RunSandbox}, 0, 1, errors.New("no address left"))
	do(m, shape(), plan.Op{Verb: plan.RunSandbox}, 0, 1, nil)
	expect(t, m, map[string]string{"kubelet_started_user_namespaced_pods_total": "2",
		"kubelet_started_user_namespaced_pods_errors_total": "1", "kubelet_started_pods_total": "4",
		"kubelet_started_pods_errors_total": "2"})
}

// PL-36: /metrics names the node and says how full claims are, each once though two pods have it; volumes that are no
// claims are not there, nor is what is not known.
func TestClaims(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	volume := func(claim string, fs statsapi.FsStats) statsapi.VolumeStats {
		v := statsapi.VolumeStats{Name: "v", FsStats: fs}
		if claim != "" {
			v.PVCRef = &statsapi.PVCReference{Namespace: "ns", Name: claim}
		}
		return v
	}
	full := statsapi.FsStats{CapacityBytes: n(100), AvailableBytes: n(60), UsedBytes: n(30), Inodes: n(9), InodesFree: n(5),
		InodesUsed: n(4)}
	m := New(func() Now {
		return Now{Node: "node-1", Claims: []statsapi.VolumeStats{volume("data", full), volume("", full),
			volume("data", statsapi.FsStats{UsedBytes: n(31)}), volume("other", statsapi.FsStats{UsedBytes: n(7)})}}
	})
	const data, other = `{namespace="ns",persistentvolumeclaim="data"}`, `{namespace="ns",persistentvolumeclaim="other"}`
	const v = "kubelet_volume_stats_"
	expect(t, m, map[string]string{`kubelet_node_name{node="node-1"}`: "1",
		v + "capacity_bytes" + data: "100", v + "available_bytes" + data: "60", v + "used_bytes" + data: "30",
		v + "inodes" + data: "9", v + "inodes_free" + data: "5", v + "inodes_used" + data: "4",
		v + "used_bytes" + other: "7", v + "capacity_bytes" + other: "",
		v + `used_bytes{namespace="",persistentvolumeclaim=""}`: ""})
}

// PL-04: hooks that went otherwise than their manifests say are counted.
func TestHooks(t *testing.T) {
	m := quiet()
	m.HookFellBack()
	m.HookFellBack()
	m.SleepCut()
	expect(t, m, map[string]string{"kubelet_lifecycle_handler_http_fallbacks_total": "2",
		"kubelet_sleep_action_terminated_early_total": "1"})
}

// SC-23: what runs is looked up when it is asked for; every state has its series.
func TestPresent(t *testing.T) {
	now := Now{Pods: 2, Containers: map[string]int{"running": 3, "exited": 1}}
	m := New(func() Now { return now })
	expect(t, m, map[string]string{"kubelet_running_pods": "2", `kubelet_running_containers{container_state="running"}`: "3",
		`kubelet_running_containers{container_state="exited"}`: "1", `kubelet_running_containers{container_state="created"}`: "0",
		`kubelet_running_containers{container_state="unknown"}`: "0"})
	now = Now{}
	expect(t, m, map[string]string{"kubelet_running_pods": "0", `kubelet_running_containers{container_state="running"}`: "0"})
}

func statuses(phase corev1.PodPhase, running bool) *corev1.PodStatus {
	s := &corev1.PodStatus{Phase: phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "main"}}}
	if running {
		s.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	}
	return s
}

// The start of a pod: the whole of it, and without pulls and init containers, which may overlap.
func TestPodStart(t *testing.T) {
	m, p := quiet(), shape()
	m.Arrived(p, after(200*time.Millisecond))
	do(m, p, plan.Op{Verb: plan.PullImage, Container: "init"}, 300*time.Millisecond, 1300*time.Millisecond, nil)
	do(m, p, plan.Op{Verb: plan.PullImage, Container: "main"}, 1800*time.Millisecond, 2800*time.Millisecond, nil)
	seen := plan.Seen{Containers: []plan.Container{
		{Name: "init", StartedAt: after(1500 * time.Millisecond), FinishedAt: after(2500 * time.Millisecond)},
		{Name: "proxy", StartedAt: after(2600 * time.Millisecond)},
	}}
	m.Trace(p, work.Event{Seen: &seen})
	m.StatusChanged(p, statuses(corev1.PodPending, false), statuses(corev1.PodPending, false), after(2600*time.Millisecond))
	m.StatusChanged(p, statuses(corev1.PodPending, false), statuses(corev1.PodRunning, true), after(3200*time.Millisecond))
	changed := m.Saving("u")
	m.Saved(p, statuses(corev1.PodRunning, true), changed, errors.New("away"), after(3300*time.Millisecond))
	m.Saved(p, statuses(corev1.PodRunning, true), m.Saving("u"), nil, after(3700*time.Millisecond))
	m.StatusChanged(p, statuses(corev1.PodRunning, true), statuses(corev1.PodRunning, true), after(4*time.Second))
	m.Saved(p, statuses(corev1.PodRunning, true), m.Saving("u"), nil, after(4100*time.Millisecond))
	expect(t, m, map[string]string{
		"kubelet_pod_start_duration_seconds_count": "1", "kubelet_pod_start_duration_seconds_sum": "3",
		// 3.5 s, less 1 s of one pull and 1.3 s of the init and the other pull together
		"kubelet_pod_start_sli_duration_seconds_count": "1", "kubelet_pod_start_sli_duration_seconds_sum": "1.2",
		"kubelet_pod_status_sync_duration_seconds_count": "2", "kubelet_pod_status_sync_duration_seconds_sum": "1.2000000000000002",
	})
}

// A pod that an agent has begun before this one is not measured: its start was.
func TestPodStartOfAnother(t *testing.T) {
	m, p := quiet(), shape()
	p.Status.StartTime = &metav1.Time{Time: began}
	m.Arrived(p, after(time.Hour))
	m.StatusChanged(p, statuses(corev1.PodPending, false), statuses(corev1.PodRunning, true), after(2*time.Hour))
	m.Saved(p, statuses(corev1.PodRunning, true), m.Saving("u"), nil, after(2*time.Hour))
	expect(t, m, map[string]string{"kubelet_pod_start_duration_seconds_count": "0", "kubelet_pod_start_sli_duration_seconds_count": "0",
		"kubelet_pod_status_sync_duration_seconds_count": "1"})
}

// Probes are counted by pod; a restart adds no series, and the end of the pod takes them away.
func TestProbes(t *testing.T) {
	m, p := quiet(), shape()
	m.Arrived(p, began)
	try := func(attempt uint32, early bool, err error) {
		do(m, p, plan.Op{Verb: plan.Probe, Container: "main", Attempt: attempt, Probe: plan.LivenessProbe, Early: early}, 0, 1, err)
	}
	series := func(result string) string {
		return `prober_probe_total{container="main",namespace="ns",pod="p",pod_uid="u",probe_type="Liveness",result="` + result + `"}`
	}
	try(0, false, nil)
	try(0, true, &work.ProbeFailure{Message: "not yet"}) // between ticks a no is no news
	try(0, false, &work.ProbeFailure{Message: "no"})
	try(0, false, errors.New("the runtime is away"))
	before := len(page(t, m))
	for attempt := range uint32(50) {
		try(attempt, false, nil)
		do(m, p, plan.Op{Verb: plan.StartContainer, Container: "main", Attempt: attempt}, 0, 1, nil)
	}
	want := map[string]string{series("successful"): "51", series("failed"): "1", series("unknown"): "1"}
	expect(t, m, want)
	if grown := len(page(t, m)) - before; grown > 30 { // the first StartContainer has a histogram and a counter
		t.Errorf("50 restarts made %d series", grown)
	}
	m.Gone("u")
	try(1, false, nil)
	for s := range want {
		expect(t, m, map[string]string{s: ""})
	}
	if len(m.pods) != 0 {
		t.Error("something is kept of a pod that is gone")
	}
}

func TestCalls(t *testing.T) {
	m := quiet()
	m.Called("/runtime.v1.RuntimeService/RunPodSandbox", time.Second, nil)
	m.Called("/runtime.v1.RuntimeService/RunPodSandbox", time.Second, errors.New("no"))
	m.Nudged("u")
	m.Nudged("")
	m.Passed("create", time.Millisecond)
	m.Decided(time.Microsecond)
	expect(t, m, map[string]string{
		`kubelet_runtime_operations_total{operation_type="run_podsandbox"}`:                "2",
		`kubelet_runtime_operations_errors_total{operation_type="run_podsandbox"}`:         "1",
		`kubelet_runtime_operations_duration_seconds_sum{operation_type="run_podsandbox"}`: "2",
		`wherry_runtime_nudges_total{scope="pod"}`:                                         "1",
		`wherry_runtime_nudges_total{scope="all"}`:                                         "1",
		`kubelet_pod_worker_duration_seconds_count{operation_type="create"}`:               "1",
		`wherry_decision_duration_seconds_bucket{le="1e-05"}`:                              "1",
	})
	for method, want := range map[string]string{"ListPodSandbox": "list_podsandbox", "PodSandboxStatus": "podsandbox_status",
		"ImageStatus": "image_status", "ExecSync": "exec_sync", "Version": "version"} {
		if got := operation("/runtime.v1.RuntimeService/" + method); got != want {
			t.Errorf("%s is %s, want %s", method, got, want)
		}
	}
	if page(t, m)["go_goroutines"] == "" || page(t, m)["process_start_time_seconds"] == "" {
		t.Error("the metrics of Go and of the process are not there")
	}
}

func TestCovered(t *testing.T) {
	s := func(from, to int) span {
		return span{after(time.Duration(from) * time.Second), after(time.Duration(to) * time.Second)}
	}
	for _, row := range []struct {
		spans []span
		want  int
	}{
		{nil, 0},
		{[]span{s(2, 3)}, 1},
		{[]span{s(2, 5), s(1, 3)}, 4},
		{[]span{s(1, 9), s(2, 3), s(8, 10)}, 9},
		{[]span{s(-5, 1), s(9, 20)}, 2},
		{[]span{s(3, 2)}, 0},
	} {
		if got := covered(row.spans, after(0), after(10*time.Second)); got != time.Duration(row.want)*time.Second {
			t.Errorf("%v: %v, want %d s", row.spans, got, row.want)
		}
	}
}
