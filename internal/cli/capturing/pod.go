// SPDX-License-Identifier: Apache-2.0

package capturing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	"github.com/wherryproject/wherry/internal/capture"
	"github.com/wherryproject/wherry/internal/cli/ask"
	"github.com/wherryproject/wherry/internal/cli/cmdline"
	"github.com/wherryproject/wherry/internal/cli/reach"
	"github.com/wherryproject/wherry/internal/podspec"
	"github.com/wherryproject/wherry/internal/podtime"
)

// pod is a pod of a cluster.
type pod struct {
	client  *reach.Client
	pod     *corev1.Pod
	secrets bool
}

func (f *flags) ofPod(ctx context.Context, name string) (source, error) {
	c, err := f.Connect()
	if err != nil {
		return nil, err
	}
	p, err := c.CoreV1().Pods(f.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, f.host.Hint(ctx, name, err)
	}
	for _, file := range f.files {
		if container, _ := splitFile(file); container != "" {
			if _, ok := podspec.FindContainer(&p.Spec, container); !ok {
				return nil, cmdline.ExitWith(cmdline.ExitUsage,
					fmt.Errorf("--file %s: pod %s has no container %s", file, name, container))
			}
		}
	}
	return &pod{c, p, f.secrets}, nil
}

func (p *pod) name() string { return p.pod.Name }

func (p *pod) describe(m *capture.Manifest) {
	m.Target, m.UID, m.Node = "pod "+p.pod.Namespace+"/"+p.pod.Name, string(p.pod.UID), p.pod.Spec.NodeName
}

func (p *pod) parts(f *flags) []part {
	all := []part{{"the pod", func(ctx context.Context, w *capture.Writer) error {
		return p.object(ctx, w, capture.PodFile, "/api/v1/namespaces/"+p.pod.Namespace+"/pods/"+p.pod.Name)
	}}, {"its events", p.events}, {"its owners", p.owners}}
	if node := p.pod.Spec.NodeName; node != "" {
		all = append(all, part{"its node", func(ctx context.Context, w *capture.Writer) error {
			return p.object(ctx, w, "node.yaml", "/api/v1/nodes/"+node)
		}})
	}
	for ref := range podspec.Containers(&p.pod.Spec) {
		all = append(all, p.logs(ref.Container.Name)...)
	}
	all = append(all, part{"its timeline", p.timeline})
	for _, container := range p.running() {
		all = append(all, part{"the processes of " + cmdline.DashIfNone(container),
			func(ctx context.Context, w *capture.Writer) error {
				return addCommand(ctx, w, capture.Containers+"/"+shownAs(container),
					p.toolbox(p.userOf(container), container, container), processes(f.secrets)...)
			}})
	}
	for _, file := range f.files {
		container, path := splitFile(file)
		all = append(all, p.file(container, path)...)
	}
	return append(all, kernelPart(string(p.pod.UID)))
}

// shownAs is the name of processes that all containers share.
func shownAs(container string) string {
	if container == "" {
		return "pod"
	}
	return container
}

// running are the containers whose processes are looked at: "" for all where they share them.
func (p *pod) running() (names []string) {
	for _, s := range podspec.Statuses(&p.pod.Status) {
		if s.State.Running != nil {
			names = append(names, s.Name)
		}
	}
	if share := p.pod.Spec.ShareProcessNamespace; len(names) > 0 && (share != nil && *share || p.pod.Spec.HostPID) {
		return []string{""}
	}
	return names
}

// object adds an object as the server has it, without the values of environment variables.
func (p *pod) object(ctx context.Context, w *capture.Writer, name, path string) error {
	text, err := p.get(ctx, path)
	if err != nil {
		w.Miss(name, err)
		return nil
	}
	return w.Text(name, text)
}

func (p *pod) get(ctx context.Context, path string) ([]byte, error) {
	answer := p.client.CoreV1().RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx)
	if err := answer.Error(); err != nil { // in the server's words, which Raw does not have
		return nil, err
	}
	text, err := answer.Raw()
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	if !p.secrets {
		capture.Mask(object)
	}
	return yaml.Marshal(object)
}

func (p *pod) events(ctx context.Context, w *capture.Writer) error {
	const name = "events.yaml"
	list, err := p.client.CoreV1().Events(p.pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.Set{
		"involvedObject.kind": "Pod", "involvedObject.name": p.pod.Name}.String()})
	if err != nil {
		w.Miss(name, err)
		return nil
	}
	items := slices.DeleteFunc(list.Items, func(e corev1.Event) bool {
		uid := e.InvolvedObject.UID // a node that makes a static pod does not know the one that the API has
		return uid != p.pod.UID && string(uid) != p.pod.Annotations[corev1.MirrorPodAnnotationKey]
	})
	text, err := yaml.Marshal(items)
	if err != nil || len(items) == 0 {
		w.Miss(name, orWords(err, "it has none, or they are older than the server keeps them"))
		return nil
	}
	return w.Text(name, text)
}

// orWords is an error, or one in words.
func orWords(err error, words string) error {
	if err != nil {
		return err
	}
	return errors.New(words)
}

// owners adds those who have made the pod: its ReplicaSet and that one's Deployment.
func (p *pod) owners(ctx context.Context, w *capture.Writer) error {
	of := metav1.Object(p.pod)
	for range 3 {
		owner := metav1.GetControllerOf(of)
		if owner == nil || owner.Kind == "Node" { // which is in a part of its own
			return nil
		}
		root := "/apis/" + owner.APIVersion
		if !strings.Contains(owner.APIVersion, "/") {
			root = "/api/" + owner.APIVersion
		}
		plural := strings.ToLower(owner.Kind) + "s" // so it is of all kinds of Kubernetes' own that own pods
		text, err := p.get(ctx, root+"/namespaces/"+p.pod.Namespace+"/"+plural+"/"+owner.Name)
		name := fmt.Sprintf("owners/%s-%s.yaml", strings.ToLower(owner.Kind), owner.Name)
		if err != nil {
			w.Miss(name, err)
			return nil
		}
		if err := w.Text(name, text); err != nil {
			return err
		}
		var next metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(text, &next); err != nil {
			return nil
		}
		of = &next
	}
	return nil
}

const podLogLines = 10_000

// logs adds a container's log, and that of the run before.
func (p *pod) logs(container string) (all []part) {
	status := podspec.FindStatus(&p.pod.Status, container)
	if status == nil || status.State.Waiting != nil && status.LastTerminationState.Terminated == nil {
		return nil // it has not run yet
	}
	take := func(name, what string, previous bool) part {
		return part{what + container, func(ctx context.Context, w *capture.Writer) error {
			return addStream(w, capture.Logs+"/"+name, func() (io.ReadCloser, error) {
				return p.client.CoreV1().Pods(p.pod.Namespace).GetLogs(p.pod.Name,
					&corev1.PodLogOptions{Container: container,
						Previous: previous, Timestamps: true, TailLines: new(int64(podLogLines))}).Stream(ctx)
			})
		}}
	}
	all = append(all, take(container+".log", "the log of ", false))
	if status.LastTerminationState.Terminated != nil {
		all = append(all, take(container+".previous.log", "the log before of ", true))
	}
	return all
}

// timeline adds when what happened to the pod, and which names it has asked for.
func (p *pod) timeline(ctx context.Context, w *capture.Writer) error {
	const name = "timeline.json"
	h, err := podtime.Source{Client: p.client}.Names(ctx, p.pod.Namespace, p.pod.Name)
	if err != nil {
		w.Miss(name, err)
		return nil
	}
	return w.JSON(name, h)
}

// userOf is as whom the processes of a container are looked at: its own user, whom the kernel lets look into them. Root
// without further rights must not. "" leaves it to the server, where its status does not show it.
func (p *pod) userOf(container string) string {
	s := podspec.FindStatus(&p.pod.Status, container)
	if s == nil || s.User == nil || s.User.Linux == nil || s.User.Linux.UID == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%d", s.User.Linux.UID, s.User.Linux.GID)
}

// toolbox runs a command of the toolbox beside the pod's containers, as a user, else as that of one of them where root
// must not be, and sees the processes of one.
func (p *pod) toolbox(user, userOf, sees string) func(context.Context, cmdline.Terminal, ...string) (int, error) {
	return func(ctx context.Context, t cmdline.Terminal, command ...string) (int, error) {
		return p.client.Stream(ctx, t, p.pod.Namespace, ask.Toolbox{Pod: p.pod.Name, User: user, UserOf: userOf,
			Sees: sees, Command: command}.Session(), reach.Notices{})
	}
}

// file adds a file of a container, or of each that has it.
func (p *pod) file(container, path string) (all []part) {
	for ref := range podspec.Containers(&p.pod.Spec) {
		name := ref.Container.Name
		if container != "" && container != name {
			continue
		}
		all = append(all, part{"files " + name + ":" + path, func(ctx context.Context, w *capture.Writer) error {
			return addCommand(ctx, w, filesAt(name, path), func(ctx context.Context, t cmdline.Terminal,
				_ ...string) (int, error) {
				return p.client.Stream(ctx, t, p.pod.Namespace, ask.Toolbox{Pod: p.pod.Name, UserOf: name,
					Archive: new(fileOf(name, path))}.Session(), reach.Notices{})
			}, fileOf(name, path).Command()...)
		}})
	}
	return all
}
