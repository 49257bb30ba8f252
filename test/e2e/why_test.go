// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/why"
	"github.com/wherryproject/wherry/test/images"
)

// answered is an answer in examples/broken/answers.yaml.
type answered struct{ Where, Says, Fact, Try string }

// DA-11: each broken pod of examples/broken, on real containers, is answered about as an experienced operator would; a
// healthy one is said to be well; somebody who may only get pods is told what he may not look at.
func TestBrokenPods(t *testing.T) {
	t.Parallel()
	needBusybox(t)
	s := own(t)
	k := kitOn(t, s)
	text, err := os.ReadFile("../../examples/broken/answers.yaml")
	k.must(err)
	var answers map[string]answered
	k.must(yaml.UnmarshalStrict(text, &answers))
	open, private := s.Registry(t), s.Registry(t)
	private.Lock("somebody", "else")
	own := strings.NewReplacer("busybox:1.37", images.BusyboxRef, "busybox:1.73", open.Host+"/busybox:1.73",
		"registry.example.com", private.Host)
	const last = "taint" // after which no other pod would get a node
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(answers)), func(n string) bool { return n == last })
	manifest := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../examples/broken", name+".yaml"))
		k.must(err)
		return own.Replace(string(text))
	}
	var all strings.Builder
	for _, name := range names {
		if name != "quota" {
			all.WriteString("---\n" + manifest(name))
		}
	}
	k.Apply(manifest("quota"), "-n", "broken-quota")
	k.Apply(all.String())
	k.answersAll(names, answers)
	k.Kubectl("taint", "nodes", "--all", "dedicated=database:NoSchedule")
	k.Apply(manifest(last))
	k.answersAll([]string{last}, answers)
	k.Kubectl("taint", "nodes", "--all", "dedicated-")
	k.Kubectl("delete", "namespace", "broken-quota", "--wait=false")
	k.healthyAnswer()
	k.answerWithoutRights()
}

// awaitBroken waits until an example is as broken as it is to be.
func (k *kit) awaitBroken(name string) {
	k.t.Helper()
	switch name {
	case "quota":
		k.Kubectl("wait", "-n", "broken-quota", "deployment/quota", "--for=condition=ReplicaFailure", "--timeout=60s")
		return
	case "readiness", "sidecar-startup":
		k.WaitEvent(name, "Unhealthy", "")
		return
	case "secret-volume":
		k.WaitEvent(name, "FailedMount", "")
		return
	case "storage-class", "pvc-unbound":
		k.WaitEvent(name, "FailedScheduling", "")
		return
	}
	k.Wait(name, "be broken", func(p *corev1.Pod) bool {
		if Condition(p, corev1.PodScheduled) == corev1.ConditionFalse {
			return true
		}
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
			for _, c := range list {
				w := c.State.Waiting
				if c.LastTerminationState.Terminated != nil || w != nil && (w.Reason == "ErrImagePull" ||
					w.Reason == "ImagePullBackOff" || w.Reason == "CreateContainerConfigError") {
					return true
				}
			}
		}
		return false
	})
}

// answersAll asks about examples when they are broken, four at a time.
func (k *kit) answersAll(names []string, answers map[string]answered) {
	k.t.Helper()
	for _, name := range names {
		k.awaitBroken(name)
	}
	var group sync.WaitGroup
	turn := make(chan struct{}, 4)
	for _, name := range names {
		turn <- struct{}{}
		group.Go(func() {
			defer func() { <-turn }()
			namespace := k.Namespace
			if name == "quota" {
				namespace = "broken-quota"
			}
			if wrong := k.answers(namespace, name, answers[name]); wrong != "" {
				k.t.Errorf("%s: %s", name, wrong)
			}
		})
	}
	group.Wait()
}

// answers asks about one example, and says what is not as it should be.
func (k *kit) answers(namespace, name string, want answered) string {
	out, err := k.Wherry(k.ctx(), "why", "-n", namespace, name, "-o", "json").Output()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	var a why.Answer
	if err := json.Unmarshal(out, &a); err != nil || len(a.Findings) == 0 {
		return fmt.Sprintf("%v: %s", err, out)
	}
	f := a.Findings[0]
	facts := ""
	for _, fact := range f.Facts {
		facts += fact.Says + " [" + fact.From + "]\n"
	}
	if !a.Wrong || f.Where != want.Where || !strings.Contains(f.What, want.Says) || !strings.Contains(facts, want.Fact) ||
		!strings.Contains(strings.Join(f.Try, "\n"), want.Try) || len(a.Findings) > 1 || len(a.Unseen) > 0 {
		return fmt.Sprintf("%s\nwant %+v", out, want)
	}
	return ""
}

// healthyAnswer asks about a pod with which nothing is wrong, and about a broken one in words.
func (k *kit) healthyAnswer() {
	k.t.Helper()
	k.up("metadata: {name: well}\nspec: {containers: [{name: c, command: [sh, -c, IDLE]}]}")
	for name, want := range map[string]struct {
		code int
		says string
	}{"pod/well": {0, "Nothing is wrong: it runs and is ready.\n"},
		"exit-1": {3, "1. container app: its program failed with exit code 1; its last words: DATABASE_URL is not set\n"}} {
		cmd := k.Wherry(k.ctx(), "why", "-n", k.Namespace, name, "--exit-code")
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != want.code || !strings.Contains(string(out), want.says) || strings.Contains(string(out), "\x1b") {
			k.t.Errorf("%s: exit code %d\n%s\nwant %d, %s", name, cmd.ProcessState.ExitCode(), out, want.code, want.says)
		}
	}
}

// answerWithoutRights asks as somebody who may get pods and nothing else.
func (k *kit) answerWithoutRights() {
	k.t.Helper()
	k.Kubectl("create", "serviceaccount", "looker")
	k.Kubectl("create", "role", "look", "--verb=get", "--resource=pods")
	k.Kubectl("create", "rolebinding", "look", "--role=look", "--serviceaccount="+k.Namespace+":looker")
	config := filepath.Join(k.t.TempDir(), "looker")
	admin, err := os.ReadFile(k.Kubeconfig)
	k.must(err)
	k.must(os.WriteFile(config, admin, 0o600))
	token := strings.TrimSpace(k.Kubectl("create", "token", "looker").Out)
	k.Kubectl("config", "set-credentials", "looker", "--token="+token, "--kubeconfig="+config)
	k.Kubectl("config", "set-context", "--current", "--user=looker", "--kubeconfig="+config)
	for name, says := range map[string][]string{
		"configmap-key": {"couldn't find key databaseUrl", "you have no right to get configmaps", "you have no right to list events"},
		"exit-1":        {"exit code 1", "log of app: you have no right to get pods/log"},
		"too-much-cpu":  {"Insufficient cpu", "nodes: you have no right to list nodes"},
		"secret-volume": {"you have no right to get secrets"},
	} {
		out, err := k.Wherry(k.ctx(), "why", "--kubeconfig", config, "-n", k.Namespace, name).CombinedOutput()
		for _, want := range says {
			if err != nil || !strings.Contains(string(out), want) {
				k.t.Errorf("%s without rights: %v\n%s\nwant %s", name, err, out, want)
			}
		}
	}
}
