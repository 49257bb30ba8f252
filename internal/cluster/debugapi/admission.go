// SPDX-License-Identifier: Apache-2.0

package debugapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// admit gives the server the cluster's admission (DA-06). changed is called when the cluster has come to know other
// kinds of rules than those that are judged by, after an upgrade.
func admit(c *genericapiserver.Config, client kubernetes.Interface, config *rest.Config, changed func()) (
	informers.SharedInformerFactory, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	names, err := judges(client)
	if err != nil {
		return nil, err
	}
	configuration, err := admission.ReadAdmissionConfiguration(names, "", runtime.NewScheme())
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	plugins := admission.NewPlugins()
	genericapiserver.RegisterAllAdmissionPlugins(plugins)
	chain, err := plugins.NewFromPlugins(names, configuration, initializer.New(client, dyn, factory,
		c.Authorization.Authorizer, c.FeatureGate, c.EffectiveVersion, c.DrainedNotify(), mapper), nil)
	if err != nil {
		return nil, fmt.Errorf("admission: %w", err)
	}
	c.AdmissionControl = chain
	return factory, c.AddPostStartHook("admission", func(ctx genericapiserver.PostStartHookContext) error {
		go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, mapperTime) // kinds come and go
		go wait.UntilWithContext(ctx, func(context.Context) {
			if now, err := judges(client); err == nil && !slices.Equal(now, names) {
				changed()
			}
		}, kindsTime)
		return nil
	})
}

// mapperTime is how long what is known of the cluster's kinds holds, which policies have parameters of.
const mapperTime = 30 * time.Second

// kindsTime is how often it is looked which kinds of rules the cluster knows: an upgrade notifies nobody.
const kindsTime = 10 * time.Minute

// judges are the plug-ins for the kinds of rules that the cluster has: one of a kind that an older cluster does not
// know would wait for it for ever, and with it every request.
func judges(client kubernetes.Interface) ([]string, error) {
	gv := admissionv1.SchemeGroupVersion.String()
	there, err := client.Discovery().ServerResourcesForGroupVersion(gv)
	if err != nil {
		return nil, fmt.Errorf("which rules for admission the cluster has (%s): %w", gv, err)
	}
	has := map[string]bool{}
	for _, r := range there.APIResources {
		has[r.Name] = true
	}
	return inOrder(has), nil
}

// inOrder are the plug-ins for resources, those that change first.
func inOrder(has map[string]bool) (names []string) {
	for _, p := range []struct{ resource, name string }{
		{"mutatingadmissionpolicies", mutatingpolicy.PluginName},
		{"mutatingwebhookconfigurations", mutatingwebhook.PluginName},
		{"validatingadmissionpolicies", validatingpolicy.PluginName},
		{"validatingwebhookconfigurations", validatingwebhook.PluginName},
	} {
		if has[p.resource] {
			names = append(names, p.name)
		}
	}
	return names
}
