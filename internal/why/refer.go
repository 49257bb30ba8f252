// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// object finds one of the objects that the pod refers to.
func (r *report) object(kind, name string) *Object {
	for i := range r.Objects {
		if o := &r.Objects[i]; o.Kind == kind && o.Name == name {
			return o
		}
	}
	return nil
}

// started reports whether something of the pod has run: then what is missing now was there.
func started(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning || ended(pod) }

// references is about objects that the pod refers to and that are not there, or not as they must be.
func (r *report) references() {
	if ended(r.Pod) {
		return
	}
	missing := map[string]*Finding{}
	for _, ref := range References(r.Pod) {
		o := r.object(ref.Kind, ref.Name)
		if o == nil {
			continue
		}
		if ref.Kind == "PersistentVolumeClaim" && !o.Missing {
			r.claim(o, ref.By)
			continue
		}
		if !o.Missing && (ref.Key == "" || slices.Contains(o.Keys, ref.Key)) {
			continue
		}
		if f := missing[ref.Kind+ref.Name+ref.Key]; f != nil {
			f.fact("spec", "%s needs it", ref.By)
			continue
		}
		f := &Finding{Where: ref.By, Past: started(r.Pod)}
		missing[ref.Kind+ref.Name+ref.Key] = r.add(f)
		from := strings.ToLower(ref.Kind) + " " + ref.Name
		if o.Missing {
			f.What = fmt.Sprintf("%s %s does not exist in namespace %s", ref.Kind, ref.Name, r.Pod.Namespace)
			f.fact("API server", "%s %q not found", ref.Kind, ref.Name)
			f.try("create it, or correct the name; the pod continues by itself when it exists")
		} else {
			f.What = fmt.Sprintf("%s %s has no key %s", ref.Kind, ref.Name, ref.Key)
			f.fact(from, "its keys: %s", join("", strings.Join(o.Keys, ", "),
				map[bool]string{true: "none"}[len(o.Keys) == 0]))
			if other := similar(ref.Key, o.Keys); other != "" {
				f.try("use key %s if that was meant", other)
			}
			f.try("add the key, or correct its name; the pod continues by itself when it exists")
		}
		if f.Past {
			f.What += " any more; the pod would not start again as it is"
		}
		r.addEvents(f, ref.Name)
	}
}

// addEvents adds the node's or the scheduler's events about the same thing, so that it is shown once.
func (r *report) addEvents(f *Finding, name string) {
	for _, e := range r.Events {
		if e.InvolvedObject.Kind == "Pod" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, name) &&
			(e.Reason == "FailedMount" || e.Reason == "Failed") {
			f.fact(eventFrom(&e), "%s", e.Message)
			return
		}
	}
}

// claim is about a claim that has no volume.
func (r *report) claim(o *Object, by string) {
	if o.Phase == "" || o.Phase == string(corev1.ClaimBound) {
		return
	}
	event := r.claimEvent(o.Name)
	unknown := o.Class != nil && *o.Class != "" && o.Classes != nil && !hasClass(o.Classes, *o.Class)
	if o.Late && !unknown && (event == nil || event.Type != corev1.EventTypeWarning) {
		return // it waits for the pod, and the pod does not wait for it
	}
	f := r.add(&Finding{Where: by})
	name := "PersistentVolumeClaim " + o.Name
	f.fact(name+", status.phase", "%s", o.Phase)
	if event != nil {
		f.fact(eventFrom(event)+" of the claim", "%s", event.Message)
	}
	classes := strings.Join(o.Classes, ", ")
	switch {
	case o.Phase == string(corev1.ClaimLost):
		f.What = fmt.Sprintf("claim %s has lost its volume", o.Name)
		f.try("bring the volume back, or restore the data into a new claim")
	case unknown:
		f.What = fmt.Sprintf("claim %s wants storage class %s, which does not exist", o.Name, *o.Class)
		f.fact("storage classes", "there are: %s", join("", classes, map[bool]string{true: "none"}[classes == ""]))
		f.try("make the claim again with a class that exists (storageClassName cannot be changed), or create the class")
	case o.Class != nil && *o.Class == "":
		f.What = fmt.Sprintf("claim %s wants a volume that was made by hand (storageClassName: \"\"), and none fits",
			o.Name)
		f.fact(name+", spec", "storageClassName: \"\"")
		f.try("create a PersistentVolume of its size and access mode, or make the claim again with a class%s",
			among(classes))
	case o.Class == nil:
		f.What = fmt.Sprintf("claim %s names no storage class, and there is no default one", o.Name)
		f.try("make the claim again with storageClassName, or mark a class as the default one%s", among(classes))
	default:
		f.What = fmt.Sprintf("claim %s has no volume yet: class %s has not made one", o.Name, *o.Class)
		f.try("look at the events of the claim (kubectl describe pvc %s) and at the provisioner of the class", o.Name)
	}
}

func among(classes string) string {
	if classes == "" {
		return ""
	}
	return " (there are: " + classes + ")"
}

// hasClass reports whether a class is among these, of which the default one is marked.
func hasClass(all []string, name string) bool {
	return slices.ContainsFunc(all, func(c string) bool { n, _, _ := strings.Cut(c, " "); return n == name })
}

// claimEvent is the last event of a claim; a warning counts for more.
func (r *report) claimEvent(name string) (found *corev1.Event) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.InvolvedObject.Kind != "PersistentVolumeClaim" || e.InvolvedObject.Name != name ||
			e.Reason != "ProvisioningFailed" && e.Reason != "FailedBinding" {
			continue
		}
		if found == nil || lastOf(e).After(lastOf(found)) {
			found = e
		}
	}
	return found
}

// preparation is about what a node does before containers begin: volumes, network.
func (r *report) preparation() {
	if started(r.Pod) || r.Pod.Spec.NodeName == "" || len(r.findings) > 0 {
		return
	}
	for _, s := range r.Pod.Status.ContainerStatuses {
		if s.State.Waiting == nil || s.State.Waiting.Reason != "ContainerCreating" &&
			s.State.Waiting.Reason != "PodInitializing" {
			return
		}
	}
	if e := r.latest("", "FailedMount", "FailedAttachVolume", "FailedMapVolume"); e != nil && !r.over(e) {
		f := r.add(&Finding{Where: "volumes", What: "its node cannot set its volumes up"})
		f.fact(eventFrom(e), "%s", e.Message)
		switch {
		case strings.Contains(e.Message, "Multi-Attach"):
			f.What = "its volume is attached to another node still"
			f.try("wait until the pod there is gone (6 minutes at most if its node is lost), or use a volume for many nodes (ReadWriteMany)")
		case strings.Contains(e.Message, "not found"):
			f.try("create what is missing, or correct its name in the pod's volumes")
		default:
			f.try("read the words above; with a network file system look at its server, and at the node's way there")
		}
	}
	if e := r.latest("", "FailedCreatePodSandBox"); e != nil && !r.over(e) {
		f := r.add(&Finding{Where: "pod", What: "its node cannot make the pod's network or sandbox"})
		f.fact(eventFrom(e), "%s", e.Message)
		f.try("look at the network plug-in (its pods in kube-system, its log on the node), and at the runtime's log on the node")
	}
}

// over reports whether something came after an event that says it was got over.
func (r *report) over(e *corev1.Event) bool {
	after := r.latest("", "Created", "Started", "SuccessfulAttachVolume")
	return after != nil && lastOf(after).After(lastOf(e))
}
