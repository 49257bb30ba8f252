// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func at(seconds int) metav1.Time {
	return metav1.NewTime(noon.Add(time.Duration(seconds) * time.Second))
}

// one is a pod with a container web, of another cluster's kubelet.
func one(change func(*corev1.Pod, *corev1.ContainerStatus)) Facts {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", CreationTimestamp: at(0)},
		Spec: corev1.PodSpec{NodeName: "node-1", RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: "web", Image: "shop/web:2"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "web"}}}}
	if change != nil {
		change(pod, &pod.Status.ContainerStatuses[0])
	}
	return Facts{Now: noon.Add(time.Minute), Pod: pod}
}

func waiting(reason, message string) Facts {
	return one(func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	})
}

// ends is a container that has ended with a code, and is to be begun again.
func ends(code int32, reason, message string, log ...string) Facts {
	f := one(func(_ *corev1.Pod, s *corev1.ContainerStatus) {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff",
			Message: `back-off 40s restarting failed container=web pod=web-1_shop(1)`}
		s.RestartCount = 4
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason,
			Message: message, StartedAt: at(10), FinishedAt: at(40)}
	})
	if len(log) > 0 {
		f.Logs = []Log{{Container: "web", Previous: true, Lines: log}}
	}
	return f
}

// event adds an event about container web, or about the pod.
func (f Facts) event(container, kind, reason, message string, last int) Facts {
	e := corev1.Event{Type: kind, Reason: reason, Message: message, LastTimestamp: at(last), FirstTimestamp: at(1),
		Count: 3, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "web-1"}}
	if container != "" {
		e.InvolvedObject.FieldPath = "spec.containers{" + container + "}"
	}
	f.Events = append(f.Events, e)
	return f
}

// with changes the pod of some facts.
func (f Facts) with(change func(*corev1.Pod)) Facts {
	change(f.Pod)
	return f
}

// DA-11: what kubelets, runtimes and registries of other clusters say is understood as well.
func TestOtherClusters(t *testing.T) {
	const web = "container web"
	for name, row := range map[string]struct {
		facts Facts
		want  answered
	}{
		"tag unknown, containerd": {waiting("ImagePullBackOff", `Back-off pulling image "shop/web:2"`).event("web",
			"Warning", "Failed",
			`Failed to pull image "shop/web:2": rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/shop/web:2": `+
				`failed to resolve reference "docker.io/shop/web:2": docker.io/shop/web:2: not found`, 50).
			event("web", "Warning", "Failed", "Error: ImagePullBackOff", 55),
			answered{web, "there is no image shop/web:2", "docker.io/shop/web:2: not found", "name or tag"}},
		"private, containerd": {waiting("ErrImagePull",
			`failed to pull and unpack image "ghcr.io/shop/web:2": failed to resolve reference `+
				`"ghcr.io/shop/web:2": failed to authorize: failed to fetch anonymous token: unexpected status from GET request: 401 Unauthorized`),
			answered{web, "wants a login", "the pod names no Secret", "docker-registry"}},
		"Docker Hub will not say": {waiting("ErrImagePull",
			`pull access denied, repository does not exist or may require authorization: `+
				`server message: insufficient_scope: authorization failed`),
			answered{web, "does not exist, or its registry wants a login", "may require authorization",
				"imagePullSecret"}},
		"limit of pulls": {waiting("ErrImagePull",
			`429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit`),
			answered{web, "no more pulls for now", "429", "wait"}},
		"other processor": {waiting("ErrImagePull", `no match for platform in manifest: not found`),
			answered{web, "no image shop/web:2 for the node's processor", "no match", "build it"}},
		"name wrong": {waiting("InvalidImageName",
			`Failed to apply default image tag "Shop/Web:2": couldn't parse image name`),
			answered{web, "not a valid image name", "couldn't parse", "lower case"}},
		"never pulled": {waiting("ErrImageNeverPull",
			`Container image "shop/web:2" is not present with pull policy of Never`),
			answered{web, "imagePullPolicy: Never", "not present", "IfNotPresent"}},
		"out of memory": {ends(137, "OOMKilled", "").with(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("64Mi")}
			p.Spec.Volumes = []corev1.Volume{{Name: "shm", VolumeSource: corev1.VolumeSource{
				EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
		}), answered{web, "its limit of 64Mi", "volume shm is in memory", "raise the limit"}},
		"out of memory without a limit": {ends(137, "OOMKilled", ""),
			answered{web, "it has no limit of its own", "30 s after it began", "resources.requests.memory"}},
		"program missing": {ends(128, "StartError",
			`failed to create containerd task: failed to create shim task: OCI runtime create failed: `+
				`runc create failed: unable to start container process: exec: "ngnix": executable file not found in $PATH: unknown`),
			answered{web, "its image has no program ngnix", `exec: "ngnix"`, "correct command"}},
		"program missing, path": {waiting("RunContainerError",
			`failed to start container "4e": Error response: OCI runtime create failed: `+
				`unable to start container process: error during container init: exec: "/app/run": stat /app/run: no such file or directory: unknown`),
			answered{web, "/app/run does not exist in the image", "no command is given", "dynamic loader"}},
		"other processor's program": {ends(1, "Error", "", "exec /usr/bin/web: exec format error"),
			answered{web, "the kernel cannot run /usr/bin/web", "exec format error", "node's processor"}},
		"no right to run": {ends(126, "ContainerCannotRun", `exec: "/run.sh": permission denied: unknown`),
			answered{web, "/run.sh may not be run", "permission denied", "chmod +x"}},
		"folder": {ends(127, "ContainerCannotRun",
			`chdir to cwd ("/app") set in config.json failed: no such file or directory`),
			answered{web, "working directory", "/app", "workingDir"}},
		"segmentation fault": {ends(139, "Error", ""), answered{web, "signal 11 (SIGSEGV)", "exit code 139",
			"core file"}},
		"aborted": {ends(134, "Error", ""), answered{web, "signal 6 (SIGABRT)", "exit code 134",
			"core file"}},
		"lost": {ends(137, "ContainerStatusUnknown", "The container could not be located"),
			answered{web, "its node lost it", "located", "restarted"}},
		"ends with success": {ends(0, "Completed", ""), answered{web, "ended by itself, with success", "exit code 0",
			"a Job"}},
		"liveness": {ends(143, "Error", "").with(livenessProbe).event("web", "Warning", "Unhealthy",
			"Liveness probe failed: Get \"http://10.0.0.7:8080/healthz\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", 38).
			event("web", "Normal", "Killing", "Container web failed liveness probe, will be restarted", 39),
			answered{web,
				"its liveness probe fails, so it is ended and begun again: no answer comes within the probe's time (timeoutSeconds: 2)", "GET /healthz at port http", "raise timeoutSeconds"}},
		"liveness, and the node tells no more of ends": {ends(137, "Error", "").with(livenessProbe).event("web",
			"Warning", "Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", -200),
			answered{web, "the program answers that it is not well (HTTP 500)", "statuscode: 500",
				"port-forward web-1 8080"}},
		"killed by nobody knows whom": {ends(137, "Error", "").with(livenessProbe).event("web", "Warning", "Unhealthy",
			"Liveness probe failed: HTTP probe failed with statuscode: 500", -2000),
			answered{web, "nothing says by whom", "exit code 137", "terminationGracePeriodSeconds"}},
		"readiness by command": {ready(false).with(func(p *corev1.Pod) {
			p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"pg_isready"}}}}
		}).event("web", "Warning", "Unhealthy", "Readiness probe failed: /var/run/postgresql:5432 - no response\n", 55),
			answered{web, "its command fails: /var/run/postgresql:5432 - no response", "runs pg_isready",
				"kubectl exec web-1 -c web -- pg_isready"}},
		"startup, again and again": {ready(false).with(func(p *corev1.Pod) {
			p.Spec.Containers[0].StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
			s := &p.Status.ContainerStatuses[0]
			s.Started, s.RestartCount = ptr.To(false), 3
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, StartedAt: at(-90), FinishedAt: at(0)}
		}).event("web", "Warning", "Unhealthy", "Startup probe failed: dial tcp 10.0.0.7:80: connect: connection refused", 50),
			answered{web, "its startup probe fails, so it is ended and begun again: nobody listens at port 80", "it runs again since", "0.0.0.0"}},
		"not ready, and its log says why": {func() Facts {
			f := ready(false).with(func(p *corev1.Pod) {
				p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80)}}}
			}).event("web", "Warning", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", 50)
			f.Logs = []Log{{Container: "web", Lines: []string{"dial tcp 10.0.0.9:5432: connect: connection refused"}}}
			return f
		}(), answered{web, "not well (HTTP 503); its log says: nobody answers at 10.0.0.9:5432", "10.0.0.9:5432: connect", "look whether the server there runs"}},
		"no event tells of the probe": {func() Facts {
			f := ready(false).with(func(p *corev1.Pod) {
				p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}}}
			})
			f.Now = noon.Add(time.Hour)
			return f
		}(), answered{web, "its readiness probe has not passed, and no event tells", "connects to port 80", "by hand"}},
		"a reason that nobody knows": {waiting("SomethingNew", "words about it"), answered{web, "it waits: SomethingNew: words about it", "words about it", "kubectl describe pod web-1"}},
		"volume of another zone": {unschedulable("0/3 nodes are available: 3 node(s) had volume node affinity conflict. preemption: 0/3 nodes …"),
			answered{"pod", "its volume is tied to a node or zone", "3 node(s)", "WaitForFirstConsumer"}},
		"anti-affinity": {unschedulable("0/3 nodes are available: 3 node(s) didn't match pod anti-affinity rules."),
			answered{"pod", "its podAntiAffinity", "3 node(s)", "preferred"}},
		"volume of another node": {waiting("ContainerCreating", "").with(pending).event("", "Warning",
			"FailedAttachVolume",
			`Multi-Attach error for volume "pvc-1" Volume is already exclusively attached to one node and can't be attached to another`, 30),
			answered{"volumes", "attached to another node", "Multi-Attach", "ReadWriteMany"}},
		"network plug-in": {waiting("ContainerCreating", "").with(pending).event("", "Warning",
			"FailedCreatePodSandBox",
			`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "4": plugin type="calico" failed (add)`, 30),
			answered{"pod", "the pod's network or sandbox", "calico", "network plug-in"}},
		"evicted": {one(func(p *corev1.Pod, _ *corev1.ContainerStatus) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted",
				"The node was low on resource: memory."
		}), answered{"pod", "evicted it", "low on resource: memory", "set requests"}},
		"kept by a finalizer": {ready(true).with(func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(at(0)), []string{"example.com/clean"}
		}), answered{"pod", "should have been gone 60 s ago; it is kept by 1 finalizers", "example.com/clean",
			"controller"}},
		"gate": {ready(true).with(func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
		}), answered{"pod", "readiness gate example.com/lb", "there is no condition", "controller"}},
		"user by name": {waiting("CreateContainerConfigError",
			`container has runAsNonRoot and image has non-numeric user (app), cannot verify user is non-root`),
			answered{web, "by name, not by a numeric UID", "non-numeric user (app)", "runAsUser"}},
	} {
		t.Run(name, func(t *testing.T) { check(t, Explain(row.facts), row.want) })
	}
}

// unschedulable is a pod that a scheduler has not placed.
func unschedulable(words string) Facts {
	return one(func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		p.Spec.NodeName, p.Status.ContainerStatuses, p.Status.Phase = "", nil, corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: words}}
	})
}

func pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

func livenessProbe(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}
	p.Spec.Containers[0].LivenessProbe = &corev1.Probe{TimeoutSeconds: 2, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}}
}

// ready is a container that runs.
func ready(is bool) Facts {
	return one(func(p *corev1.Pod, s *corev1.ContainerStatus) {
		s.State.Running, s.Ready, s.Started = &corev1.ContainerStateRunning{StartedAt: at(1)}, is, ptr.To(true)
		if is {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
	})
}

// DA-11: a pod with which nothing is wrong is said to be well; what is over is told as over.
func TestNothingWrong(t *testing.T) {
	restarted := ready(true)
	restarted.Now = noon.Add(time.Hour)
	restarted.Pod.Status.ContainerStatuses[0].RestartCount = 2
	restarted.Pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137,
		Reason: "OOMKilled", StartedAt: at(-90), FinishedAt: at(0)}
	asking := ready(true)
	asking.Names = []Name{{Name: "db.shop.svc.cluster.local.", Code: "NXDOMAIN"}, {Name: "db", Code: "NXDOMAIN"},
		{Name: "example.com.shop.svc.cluster.local", Code: "NXDOMAIN"}, {Name: "example.com", Code: "NOERROR"}}
	var healthy Facts
	read(t, "testdata/healthy.yaml", &healthy)
	for name, row := range map[string]struct {
		facts    Facts
		summary  string
		findings []string
	}{
		"healthy":      {healthy, "it runs and is ready", nil},
		"ready":        {ready(true), "it runs and is ready", nil},
		"restarted":    {restarted, "it runs and is ready", []string{"the kernel killed it because memory ran out"}},
		"name unknown": {asking, "it runs and is ready", []string{"it asked for a name that does not exist: db"}},
		"done": {one(func(p *corev1.Pod, s *corev1.ContainerStatus) {
			p.Status.Phase, p.Spec.RestartPolicy = corev1.PodSucceeded, corev1.RestartPolicyNever
			s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed"}
		}), "run to its end", nil},
		"starting": {waiting("ContainerCreating", "").with(pending).event("web", "Normal", "Pulling",
			`Pulling image "shop/web:2"`, 2),
			`being started. Pulling image "shop/web:2"`, nil},
		"being deleted": {ready(true).with(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(at(90)) }),
			"being deleted", nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := Explain(row.facts)
			if a.Wrong || !strings.Contains(a.Summary, row.summary) || len(a.Findings) != len(row.findings) {
				t.Fatalf("%+v", a)
			}
			for i, f := range a.Findings {
				if !f.Past || !strings.Contains(f.What, row.findings[i]) {
					t.Errorf("%+v, want %s", f, row.findings[i])
				}
			}
		})
	}
	restarted.Now = noon.Add(time.Minute)
	if a := Explain(restarted); !a.Wrong {
		t.Errorf("it was killed a minute ago: %+v", a)
	}
}
