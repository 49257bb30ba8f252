// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const podManifest = `
apiVersion: v1
kind: Pod
metadata:
  name: web
  labels: {app: web, tier: front}
  annotations: {note: "first"}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: main
    image: wherry.test/tool:1
    args: [http]
    ports: [{name: http, containerPort: 8080}]
    env: [{name: GREETING, value: hello}]
`

// TestGetAndDescribe: what kubectl shows of a running pod, in every form (PL-01).
func TestGetAndDescribe(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.KubectlIn(podManifest, "create", "-f", "-").Is("pod/web created")
	pod := s.WaitReady("web")

	eachKubectl(t, s, func(t *testing.T, s *Space) {
		table := s.Kubectl("get", "pods")
		if !regexp.MustCompile(`(?m)^NAME +READY +STATUS +RESTARTS +AGE\nweb +1/1 +Running +0 +\d+s$`).MatchString(table.Out) {
			t.Errorf("kubectl get pods printed\n%s", table.Out)
		}
		wide := s.Kubectl("get", "pods", "-o", "wide")
		row := strings.Fields(wide.Lines()[1])
		if want := []string{pod.Status.PodIP, s.NodeName, "<none>", "<none>"}; strings.Join(row[5:], " ") != strings.Join(want, " ") {
			t.Errorf("kubectl get pods -o wide printed\n%s\nwant the row to end %v", wide.Out, want)
		}
		s.Kubectl("get", "pod", "web", "--show-labels").Has("app=web,tier=front")
		s.Kubectl("get", "pods", "-l", "tier=front", "--no-headers").Has("web")
		s.Kubectl("get", "pods", "-l", "tier!=front").Is("")
		s.Kubectl("get", "pods", "--field-selector", "status.phase=Running,spec.nodeName="+s.NodeName, "-o", "name").Is("pod/web")
		s.Kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP} {.status.phase} {.status.qosClass}").Is(pod.Status.PodIP + " Running BestEffort")
		s.Kubectl("get", "pod", "web", "-o", "custom-columns=N:.metadata.name,I:.spec.containers[*].image").Has("wherry.test/tool:1")
		s.Kubectl("get", "pod", "web", "-o", "go-template={{.metadata.name}}").Is("web")
		s.Kubectl("get", "po,sa,cm", "-o", "name").Has("pod/web", "serviceaccount/default", "configmap/kube-root-ca.crt")
		s.Kubectl("get", "pods", "-A").Has(s.Namespace, "web")

		var fromYAML, fromJSON corev1.Pod
		if err := yaml.Unmarshal([]byte(s.Kubectl("get", "pod", "web", "-o", "yaml").Out), &fromYAML); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(s.Kubectl("get", "pod", "web", "-o", "json").Out), &fromJSON); err != nil {
			t.Fatal(err)
		}
		for form, p := range map[string]corev1.Pod{"yaml": fromYAML, "json": fromJSON} {
			if p.UID != pod.UID || p.Kind != "Pod" || p.Spec.NodeName != s.NodeName {
				t.Errorf("-o %s: uid %s, kind %q, node %q", form, p.UID, p.Kind, p.Spec.NodeName)
			}
		}
		s.Kubectl("describe", "pod", "web").Has(
			"Name:             web", "Namespace:        "+s.Namespace, "Node:             "+s.NodeName+"/"+s.NodeIP, "Status:           Running", "IP:               "+pod.Status.PodIP,
			"Image:         wherry.test/tool:1", "Port:          8080/TCP", "State:          Running", "Ready:          True", "GREETING:  hello",
			"PodScheduled", "Initialized", "ContainersReady", "PodReadyToStartContainers", "QoS Class:                   BestEffort",
			"Scheduled", "Pulled", "Created", "Started")
		s.KubectlFails("get", "pod", "nosuch").Says(`Error from server (NotFound): pods "nosuch" not found`)
		s.KubectlFails("get", "nosuchthings").Says(`the server doesn't have a resource type "nosuchthings"`)
	})
}

// TestConditions: a running pod's conditions, container statuses and addresses are those Kubernetes publishes (PL-01).
func TestConditions(t *testing.T) {
	t.Parallel()
	s := shared(t)
	s.Create(NewPod("web", Tool("http"), Tool("sleep")))
	pod := s.WaitReady("web")
	for _, c := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if Condition(pod, c) != corev1.ConditionTrue {
			t.Errorf("condition %s is %q", c, Condition(pod, c))
		}
	}
	st := pod.Status
	if st.Phase != corev1.PodRunning || st.HostIP != s.NodeIP || st.PodIP == "" || st.StartTime == nil || len(st.PodIPs) != 1 || st.PodIPs[0].IP != st.PodIP {
		t.Errorf("phase %s, hostIP %s, podIP %s, podIPs %v, startTime %v", st.Phase, st.HostIP, st.PodIP, st.PodIPs, st.StartTime)
	}
	for _, c := range st.ContainerStatuses {
		if !c.Ready || c.Started == nil || !*c.Started || c.State.Running == nil || !strings.HasPrefix(c.ContainerID, "containerd://") || c.ImageID == "" || c.Image != "wherry.test/tool:1" {
			t.Errorf("container status %+v", c)
		}
	}
	for i, name := range []string{"main", "second"} {
		if st.ContainerStatuses[i].Name != name {
			t.Errorf("container %d is %s, want %s", i, st.ContainerStatuses[i].Name, name)
		}
	}
}

// TestNode: the node as kubectl shows it: Ready, with capacity, addresses and a fresh lease (PL-13).
func TestNode(t *testing.T) {
	t.Parallel()
	s := shared(t)
	r := s.Kubectl("get", "nodes")
	if !regexp.MustCompile(`(?m)^NAME +STATUS +ROLES +AGE +VERSION\n` + regexp.QuoteMeta(s.NodeName) + ` +Ready +\S+ +\S+ +v1\.\d+\.\d+`).MatchString(r.Out) {
		t.Errorf("kubectl get nodes printed\n%s", r.Out)
	}
	s.Kubectl("get", "nodes", "-o", "wide").Has("containerd://2.4.", s.NodeIP)
	s.Kubectl("describe", "node", s.NodeName).Has("MemoryPressure", "DiskPressure", "PIDPressure", "Ready", "Capacity:", "Allocatable:", "InternalIP:  "+s.NodeIP, "Container Runtime Version:")
	s.Kubectl("get", "lease", "-n", "kube-node-lease", s.NodeName, "-o", "jsonpath={.spec.holderIdentity}").Is(s.NodeName)
}

// TestDiscovery: explain, api-resources, api-versions, version and cluster-info work from the server's own documents.
func TestDiscovery(t *testing.T) {
	t.Parallel()
	s := shared(t)
	eachKubectl(t, s, func(t *testing.T, s *Space) {
		s.Kubectl("explain", "pod.spec.containers").Has("KIND:       Pod", "VERSION:    v1", "image\t<string>", "-required-")
		s.Kubectl("explain", "pod.spec.containers.env.valueFrom", "--recursive").Has("configMapKeyRef", "secretKeyRef")
		s.KubectlFails("explain", "pod.spec.nosuch").Says("does not exist")
		s.Kubectl("api-resources").Has("pods", "configmaps", "secrets", "serviceaccounts", "events", "namespaces", "nodes", "leases")
		s.Kubectl("api-resources", "--namespaced=false", "-o", "name").Has("nodes", "namespaces").HasNot("pods\n")
		s.Kubectl("api-versions").Has("v1\n", "events.k8s.io/v1", "coordination.k8s.io/v1")
		s.Kubectl("version").Has("Server Version: v1.")
		s.Kubectl("cluster-info").Has("control plane", s.Config.Host)
		s.Kubectl("get", "--raw", "/readyz?verbose").Has("readyz check passed")
	})
}
