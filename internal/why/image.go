// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/wherryproject/wherry/internal/podspec"
)

// image is about an image that a node does not get.
func (r *report) image(ref podspec.ContainerRef, w *corev1.ContainerStateWaiting, from string) {
	words := w.Message
	if e := r.latest(ref.Container.Name, "Failed"); e != nil && w.Reason != "InvalidImageName" {
		for i := range r.Events { // the one with the registry's words; others say only that it failed
			o := &r.Events[i]
			if o.Reason == "Failed" && containerOf(o) == ref.Container.Name &&
				strings.HasPrefix(o.Message, "Failed to pull image") &&
				(!strings.HasPrefix(e.Message, "Failed to pull image") || !lastOf(o).Before(lastOf(e))) {
				e = o
			}
		}
		if strings.HasPrefix(e.Message, "Failed to pull image") {
			words, from = e.Message, eventFrom(e)
		}
	}
	f := r.add(Pull(label(ref), ref.Container.Image, w.Reason, words, from))
	if !saysLogin(words) {
		return
	}
	secrets := PullSecrets(r.Pod)
	if len(secrets) == 0 {
		f.fact("spec.imagePullSecrets", "the pod names no Secret with a login")
		f.try("kubectl create secret docker-registry NAME --docker-server=… --docker-username=… --docker-password=…, " +
			"and name it in imagePullSecrets of the pod or of its service account")
		return
	}
	for _, name := range secrets {
		switch o := r.object("Secret", name); {
		case o == nil:
			f.fact("spec.imagePullSecrets", "it names Secret %s", name)
		case o.Missing:
			f.fact("spec.imagePullSecrets", "it names Secret %s, which does not exist", name)
			f.try("create Secret %s in namespace %s: kubectl create secret docker-registry", name, r.Pod.Namespace)
		case !slices.Contains(o.Keys, corev1.DockerConfigJsonKey) && !slices.Contains(o.Keys, corev1.DockerConfigKey):
			f.fact("secret "+name, "it is not a login for a registry: it has no key %s", corev1.DockerConfigJsonKey)
		default:
			f.fact("spec.imagePullSecrets",
				"Secret %s is there, and the registry does not take it or it is for another one", name)
		}
	}
}

// Pull explains why an image was not pulled, from the runtime's or the registry's words.
func Pull(where, image, reason, words, from string) *Finding {
	f := &Finding{Where: where}
	f.fact(from, "%s", words)
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(w string) bool { return strings.Contains(strings.ToLower(words), w) })
	}
	switch {
	case reason == "InvalidImageName":
		f.What = fmt.Sprintf("%q is not a valid image name", image)
		f.try("correct it: [REGISTRY/]NAME[:TAG], in lower case")
	case reason == "ErrImageNeverPull":
		f.What = fmt.Sprintf("image %s is not on the node, and imagePullPolicy: Never forbids to pull it", image)
		f.try("bring the image onto the node, or set imagePullPolicy: IfNotPresent")
	case has("no space left"):
		f.What = fmt.Sprintf("the node has no room for image %s", image)
		f.try("remove images that nobody uses, or give the node a larger disk")
	case has("no match for platform", "no matching manifest", "no variant for this node"):
		f.What = fmt.Sprintf("there is no image %s for the node's processor", image)
		f.try("build it for that processor too, or send the pod elsewhere with nodeSelector kubernetes.io/arch")
	case has("x509", "certificate", "tls:"):
		f.What = fmt.Sprintf("the node does not trust the certificate of the registry of %s", image)
		f.try("give the node's runtime the registry's CA")
	case has("server gave http response", "speaks plain http", "does not speak tls"):
		f.What = fmt.Sprintf("the registry of %s speaks plain HTTP", image)
		f.try("give it a certificate, or tell the node's runtime that it is without")
	case has("toomanyrequests", "429"):
		f.What = "the registry takes no more pulls for now: there were too many"
		f.try("wait, log in with an account of a higher limit, or use a mirror")
	case has("no such host", "cannot be reached", "connection refused", "i/o timeout", "no route to host",
		"network is unreachable", "connection reset", "deadline exceeded", "timeout", "server misbehaving"):
		f.What = fmt.Sprintf("the node cannot reach the registry of image %s", image)
		f.try("correct the registry in the image's name, or see to the node's way there: DNS, proxy, firewall")
	case has("or it asks for credentials", "may require"):
		f.What = fmt.Sprintf("image %s does not exist, or its registry wants a login to tell", image)
		f.try("correct name and tag, or give the pod an imagePullSecret")
	case saysLogin(words):
		f.What = fmt.Sprintf("the registry of image %s wants a login, or does not take the one that it got", image)
	case has("not found", "manifest unknown", "name unknown", "404"):
		f.What = fmt.Sprintf("there is no image %s in its registry", image)
		f.try("correct its name or tag; see what there is with: crane ls, skopeo list-tags, or the registry's page")
	default:
		f.What = fmt.Sprintf("the node cannot pull image %s", image)
		f.try("read the registry's words above")
	}
	return f
}

// saysLogin reports whether words of a registry are about a login.
func saysLogin(words string) bool {
	words = strings.ToLower(words)
	return slices.ContainsFunc([]string{"unauthorized", "authentication required", "401", "403", "denied",
		"credentials", "authorization failed", "may require"},
		func(w string) bool { return strings.Contains(words, w) })
}
