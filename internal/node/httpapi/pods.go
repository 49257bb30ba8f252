// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wherryproject/wherry/internal/cri"
)

// pods lists the pods the agent works for.
func (s *Server) pods(w http.ResponseWriter, r *http.Request) {
	list := newPodList()
	for _, p := range s.config.Host.Pods() {
		list.Items = append(list.Items, *p)
	}
	s.writeJSON(w, r, list)
}

// runningPods lists what runs in the runtime, with as much of a pod as the runtime knows.
func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	containers, err := s.config.CRI.Runtime.ListContainers(r.Context(),
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
			State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
		}})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	sandboxes, err := s.config.CRI.Runtime.ListPodSandbox(r.Context(),
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{
			State: &runtimeapi.PodSandboxStateValue{State: runtimeapi.PodSandboxState_SANDBOX_READY},
		}})
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.writeJSON(w, r, runningPodList(sandboxes.GetItems(), containers.GetContainers()))
}

func runningPodList(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) *corev1.PodList {
	pods := map[string]*corev1.Pod{}
	podOf := func(labels map[string]string) *corev1.Pod {
		uid := labels[cri.LabelPodUID]
		if uid == "" || cri.IsExec(labels) {
			return nil
		}
		if pods[uid] == nil {
			pods[uid] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				UID: types.UID(uid), Name: labels[cri.LabelPodName], Namespace: labels[cri.LabelPodNamespace],
			}}
		}
		return pods[uid]
	}
	for _, sb := range sandboxes {
		podOf(sb.GetLabels())
	}
	for _, c := range containers {
		if p := podOf(c.GetLabels()); p != nil {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c.GetMetadata().GetName(),
				Image: c.GetImage().GetImage()})
		}
	}
	list := newPodList()
	for _, p := range pods {
		list.Items = append(list.Items, *p)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return list
}

func newPodList() *corev1.PodList {
	return &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{}}
}

func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}
