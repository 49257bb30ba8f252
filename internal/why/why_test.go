// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DA-11: what the lines of logs plainly say, in the words of many programs; what they do not plainly say is left alone.
func TestReadLog(t *testing.T) {
	for line, want := range map[string]string{
		"dial tcp 10.0.0.9:5432: connect: connection refused":                               "refused 10.0.0.9 5432",
		"read tcp 10.1.0.5:33012->10.2.0.1:443: i/o timeout":                                "timedOut 10.2.0.1 443",
		"wget: can't connect to remote host (10.0.0.9): Connection refused":                 "refused 10.0.0.9 ",
		`connection to server at "db" (10.0.0.9), port 5432 failed: Connection refused`:     "refused 10.0.0.9 5432",
		"Error: connect ECONNREFUSED fd00::9:5432":                                          "refused fd00::9:5432 ",
		"Error: connect ECONNREFUSED 127.0.0.1:6379":                                        "refused 127.0.0.1 6379",
		"ConnectionRefusedError: [Errno 111] Connection refused":                            "refused  ",
		"curl: (7) Failed to connect to db port 80 after 1 ms: Connection refused":          "refused  80",
		"wget: bad address 'db:5432'":                                                       "noName db ",
		"dial tcp: lookup db.shop on 10.96.0.10:53: no such host":                           "noName db.shop ",
		"curl: (6) Could not resolve host: db":                                              "noName db ",
		"Error: getaddrinfo ENOTFOUND db":                                                   "noName db ",
		"java.net.UnknownHostException: db: Name or service not known":                      "noName db ",
		`could not translate host name "db" to address: Name does not resolve`:              "noName db ",
		"socket.gaierror: [Errno -3] Temporary failure in name resolution":                  "noName  ",
		"OSError: [Errno 30] Read-only file system: '/app/x'":                               "readOnly /app/x ",
		"sh: can't create /app.pid: Read-only file system":                                  "readOnly /app.pid ",
		"mkdir: can't create directory '/data/a': Permission denied":                        "denied /data/a ",
		"listen tcp :8080: bind: address already in use":                                    "taken  ",
		"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space":          "noMemory  ",
		"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory": "noMemory  ",
		"write /data/x: no space left on device":                                            "full /data/x ",
		"exec /entry: exec format error":                                                    "execFormat /entry ",
		"all is well":                                                                       "",
		"no connections were refused":                                                       "", "": "",
	} {
		got := ""
		if all := ReadLog([]string{line}); len(all) > 0 {
			got = fmt.Sprintf("%s %s %s", all[0].Topic, all[0].Object, all[0].Port)
			if all[0].Words() == "" || len(all[0].tries(Box{})) == 0 {
				t.Errorf("%q: nothing is said of %s", line, all[0].Topic)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
	all := ReadLog([]string{"connect: connection refused", "dial tcp 10.0.0.9:1: connection refused",
		"lookup db: no such host"})
	if len(all) != 2 || all[0].Topic != NoName || all[1].Object != "10.0.0.9" {
		t.Errorf("each thing once, the latest first: %+v", all)
	}
}

// DA-11: a connection that was refused leads to the Service: who answers for it, and at which ports.
func TestServices(t *testing.T) {
	service := Service{Namespace: "shop", Name: "db", IPs: []string{"10.0.0.9"},
		Ports: []corev1.ServicePort{{Port: 5432}}, Selector: map[string]string{"app": "db"}, Known: true}
	for name, row := range map[string]struct {
		change    func(*Service)
		log       string
		says, try string
	}{
		"no pod": {nil, "dial tcp 10.0.0.9:5432: connect: connection refused",
			"that is Service db, whose selector fits no pod", "correct the selector"},
		"by name": {nil, "Failed to connect to db port 5432: Connection refused",
			"that is Service db, whose selector fits no pod", "correct the selector"},
		"not ready": {func(s *Service) { s.Chosen, s.Unready = 2, 2 }, "dial tcp 10.0.0.9:5432: connection refused",
			"of which no pod is ready", "kubectl get pods -l app=db"},
		"port": {func(s *Service) { s.Chosen, s.Ready = 1, 1 }, "dial tcp 10.0.0.9:80: connection refused",
			"Service db has no such port", "ask at a port"},
		"target": {func(s *Service) { s.Chosen, s.Ready = 1, 1 }, "dial tcp 10.0.0.9:5432: connection refused",
			"nobody answers at 10.0.0.9:5432", "targetPort of Service db"},
		"another": {nil, "dial tcp 10.0.0.8:5432: connection refused",
			"nobody answers at 10.0.0.8:5432 (connection refused)", "look whether the server there runs"},
		"itself": {nil, "dial tcp 127.0.0.1:5432: connection refused", "nobody answers at 127.0.0.1:5432",
			"localhost is the pod itself"},
	} {
		t.Run(name, func(t *testing.T) {
			s := service
			if row.change != nil {
				row.change(&s)
			}
			f := ends(1, "Error", "", row.log)
			f.Services = []Service{s}
			check(t, Explain(f), answered{"container web", row.says, row.log, row.try})
			if got := Reached(f, s); got != (name != "another" && name != "itself") {
				t.Errorf("the Service was meant: %t", got)
			}
		})
	}
}

// DA-11: why no node takes a pod, node by node, with the numbers.
func TestScheduling(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory),
			"pods": resource.MustParse("110")}
	}
	f := one(func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		p.Spec.NodeName, p.Status.ContainerStatuses = "", nil
		p.Status.Phase = corev1.PodPending
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		p.Spec.Containers[0].Resources.Requests = list("1500m", "1Gi")
		delete(p.Spec.Containers[0].Resources.Requests, "pods")
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason:  "Unschedulable",
			Message: "0/4 nodes are available: …. preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."}}
	})
	ssd := map[string]string{"disk": "ssd"}
	f.Nodes = []Node{
		{Name: "full", Labels: ssd, Allocatable: list("2", "8Gi"), Requested: list("1", "1Gi")},
		{Name: "hdd", Labels: map[string]string{"disk": "hdd"}, Allocatable: list("8", "8Gi"),
			Requested: corev1.ResourceList{}},
		{Name: "away", Labels: ssd, Allocatable: list("8", "8Gi"), Requested: list("0", "7800Mi"), Unschedulable: true,
			Taints: []corev1.Taint{{Key: "node.kubernetes.io/unreachable", Effect: corev1.TaintEffectNoExecute}}},
		{Name: "many", Labels: ssd, Allocatable: list("8", "8Gi"), Requested: corev1.ResourceList{}, Pods: 110},
	}
	a := Explain(f)
	if len(a.Findings) != 1 {
		t.Fatalf("%+v", a)
	}
	got := ""
	for _, fact := range a.Findings[0].Facts[1:] {
		got += fact.From + ": " + fact.Says + "\n"
	}
	const want = `node full: cpu: asked for 1500m, 1 free of 2
node hdd: its label disk is hdd, not ssd
node away: it takes no new pods (spec.unschedulable); it has taint node.kubernetes.io/unreachable:NoExecute, which the pod does not tolerate; memory: asked for 1Gi, 392Mi free of 8Gi
node many: it has 110 pods, of 110
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	f.Nodes = nil // which he may not list
	check(t, Explain(f), answered{"pod", "no node can take it", "0/4 nodes are available", ""})
}

// DA-11: what the API server says when it refuses pods.
func TestRefusal(t *testing.T) {
	for words, want := range map[string]string{
		`pods "a" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2`:                                   "quota team of the namespace: asked for pods=1; in use pods=2; allowed pods=2",
		`pods "a" is forbidden: failed quota: team: must specify limits.cpu for: web; requests.cpu for: web`:                              "they have to say how much they need",
		`pods "a" is forbidden: maximum cpu usage per Container is 500m, but limit is 1`:                                                  "LimitRange",
		`pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "web" must set …)`: "Pod Security level",
		`pods "a" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found`:                            "service account does not exist",
		`admission webhook "policy.example.com" denied the request: no latest tags`:                                                       "refused by an admission webhook",
		`Internal error occurred: failed calling webhook "policy.example.com": connection refused`:                                        "webhook does not answer",
		`something else`: "refused by the API server",
	} {
		if f := Refusal("Deployment web", words, "event"); !strings.Contains(f.What, want) || len(f.Try) == 0 ||
			f.Facts[0].Says != words {
			t.Errorf("%s: %+v, want %s", words, f, want)
		}
	}
}

// DA-11: a name that nobody knows leads to the Service that was likely meant.
func TestMeant(t *testing.T) {
	f := one(nil)
	f.Services = []Service{{Namespace: "shop", Name: "database"}, {Namespace: "data", Name: "cache"},
		{Namespace: "shop", Name: "a"}}
	for name, want := range map[string]string{"databse": "database", "cache": "cache.data", "databases": "database",
		"b": "", "storage": "", "cache.shop": "cache.data", "database.dta": "database.shop", "": ""} {
		if _, got := meant(f, name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// DA-11: of a container that crashes the log of the run that crashed is wanted, of one that is not ready the present
// one.
func TestLogs(t *testing.T) {
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		want []WantedLog
	}{
		"crash loop": {ends(1, "Error", "").Pod, []WantedLog{{"web", true}}},
		"not begun":  {ends(128, "StartError", "").Pod, nil},
		"not ready":  {ready(false).Pod, []WantedLog{{"web", false}}},
		"ready":      {ready(true).Pod, nil},
		"failed": {one(func(p *corev1.Pod, s *corev1.ContainerStatus) {
			p.Status.Phase, s.State.Terminated = corev1.PodFailed, &corev1.ContainerStateTerminated{ExitCode: 1}
		}).Pod, []WantedLog{{"web", false}}},
	} {
		if got := Logs(row.pod); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", name, got, row.want)
		}
	}
}

// DA-11: of the pods of a workload the one that is worst off is answered about.
func TestWorst(t *testing.T) {
	well, broken, gone := ready(true).Pod, ends(1, "Error", "").Pod, ends(1, "Error", "").Pod
	gone.DeletionTimestamp = &metav1.Time{Time: noon}
	if i := Worst([]corev1.Pod{*well, *gone, *broken, *well}); i != 2 {
		t.Errorf("%d", i)
	}
	if i := Worst(nil); i != -1 {
		t.Errorf("%d", i)
	}
}

// DA-11: who changed what, and when, before the first sign of trouble.
func TestChanges(t *testing.T) {
	f := ends(1, "Error", "").event("web", "Warning", "BackOff", "Back-off restarting failed container", 41)
	f.Events[0].FirstTimestamp = at(12)
	f.Owners = []Owner{{Kind: "Deployment", Name: "web", Managed: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl-set", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: at(-5).Time},
			FieldsV1: metav1.NewFieldsV1(
				`{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`)},
		{Manager: "controller", Subresource: "status", Time: &metav1.Time{Time: at(5).Time},
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)}}}}
	var got []string
	for _, c := range Explain(f).Changes {
		got = append(got, fmt.Sprintf("%s %s (%s) %t", c.At.Format("05"), c.What, c.By, c.Sign))
	}
	want := []string{`55 Deployment web was written: spec.template.spec.containers[name="web"].image (kubectl-set) false`,
		"00 the pod was created () false", "12 Back-off restarting failed container () true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// DA-11: what a rollout has changed, without the values of variables.
func TestTemplateDiff(t *testing.T) {
	template := func(image, memory, value string, more ...string) *corev1.PodSpec {
		c := corev1.Container{Name: "web", Image: image, Env: []corev1.EnvVar{{Name: "KEY", Value: value}, {Name: "SAME", Value: "s"}}}
		if memory != "" {
			c.Resources.Limits = corev1.ResourceList{"memory": resource.MustParse(memory)}
		}
		s := &corev1.PodSpec{Containers: []corev1.Container{c}}
		for _, name := range more {
			s.InitContainers = append(s.InitContainers, corev1.Container{Name: name})
		}
		return s
	}
	got := TemplateDiff(template("a:1", "", "old", "fetch"), template("a:2", "64Mi", "hush", "load"))
	want := []string{"init container load is new", "image a:1 → a:2 of container web", "limit of memory none → 64Mi of container web",
		"env KEY of container web", "init container fetch is gone"}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := TemplateDiff(template("a:1", "1Gi", "x"), template("a:1", "1Gi", "x")); got != nil {
		t.Errorf("no difference: %q", got)
	}
	f := ends(1, "Error", "")
	f.Owners = []Owner{{Kind: "Deployment", Name: "web", Rollout: noon.Add(-time.Second), Diff: []string{"image a:1 → a:2 of container web"}}}
	if a := Explain(f); len(a.Changes) != 2 || a.Changes[0].What != "rollout: image a:1 → a:2 of container web" {
		t.Errorf("%+v", a.Changes)
	}
}

// FuzzReadLog reads lines that anybody may have written (DA-11).
func FuzzReadLog(f *testing.F) {
	f.Add("dial tcp [fd00::9]:5432: connect: connection refused\nlookup \x1b[2J: no such host")
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range ReadLog(strings.Split(text, "\n")) {
			if hostile(s.Line) || hostile(s.Object) || s.Words() == "" {
				t.Errorf("%q becomes %+v", text, s)
			}
		}
	})
}

// FuzzExplain makes answers of facts that are out of order in every way (DA-11): one comes of all of them, on lines of
// bounded length and without controls.
func FuzzExplain(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 20 {
		f.Fatal(err, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil {
			text, err = yaml.YAMLToJSON(text)
		}
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"pod":{"status":{"containerStatuses":[{"name":"a"}]}},"events":[{"reason":"Failed"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var facts Facts
		if json.Unmarshal(text, &facts) != nil {
			return
		}
		a := Explain(facts)
		if a.Summary == "" {
			t.Errorf("no summary: %+v", a)
		}
		for _, finding := range a.Findings {
			for _, s := range append([]string{finding.Where, finding.What}, finding.Try...) {
				if hostile(s) {
					t.Errorf("it says %q", s)
				}
			}
			for _, fact := range finding.Facts {
				if hostile(fact.Says) || hostile(fact.From) {
					t.Errorf("a fact is %+v", fact)
				}
			}
		}
	})
}

// hostile tells whether a text is more than a line, or controls a terminal.
func hostile(text string) bool {
	return len([]rune(text)) > longest+1 || strings.ContainsFunc(text,
		func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) })
}

// DA-11: an end for want of memory tells who was killed and who had the memory, where the kernel of the pod's machine has said it.
func TestKills(t *testing.T) {
	kills := []Kill{{Container: "aaa", Killed: MemoryOf{PID: 1, Name: "old"}}, {Container: "bbb", Killed: MemoryOf{PID: 9, Name: "other's"}},
		{Container: "aaa", Killed: MemoryOf{PID: 7, Name: "wor\x1bker", Bytes: 50 << 20}, Others: []MemoryOf{{5, "cache", 12 << 20}, {4, "sh", 1 << 20}, {3, "a", 0}, {2, "b", 0}}},
		{Container: "", Killed: MemoryOf{Name: "nobody's"}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 137, Reason: "OOMKilled", ContainerID: "containerd://aaa"}}}}
	answer := Explain(Facts{Now: time.Now(), Pod: pod, Kills: kills})
	want := `process 7 (wor ker) was killed, which had 50 MiB; beside it: cache 12 MiB, sh 1.0 MiB, a 0.0 MiB, 1 more with less`
	var all []string
	for _, f := range answer.Findings {
		for _, fact := range f.Facts {
			all = append(all, fact.Says)
		}
	}
	if !slices.Contains(all, want) || strings.Contains(strings.Join(all, " "), "'s") {
		t.Errorf("%q\nlacks %q", all, want)
	}
}
