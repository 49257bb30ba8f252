// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/wherryproject/wherry/internal/api/admission/configfile"
	"github.com/wherryproject/wherry/internal/api/admission/images"
	"github.com/wherryproject/wherry/internal/api/connect"
	"github.com/wherryproject/wherry/internal/api/registry"
	"github.com/wherryproject/wherry/internal/api/schemes"
)

// defaultNotReadyTime is how long a pod stays bound to a node that is not ready or unreachable, unless somebody says
// otherwise.
const defaultNotReadyTime = 300 * time.Second

// Options configure admission.
type Options struct {
	ConfigFile string // an AdmissionConfiguration; default: every plug-in as it is by itself
	// NotReady and Unreachable are how long pods that say nothing about it stay bound to a node that is not ready or
	// cannot be reached, in whole seconds; default: 300 s.
	NotReady, Unreachable *time.Duration
	// DefaultPodSecurity is the Pod Security level that namespaces without one are held to, all but kube-system:
	// privileged, baseline or restricted; default: what ConfigFile says, else privileged, as in Kubernetes.
	DefaultPodSecurity string
}

// Completed are Options that were completed and read.
type Completed struct {
	Options
	config configfile.Config
}

// Complete completes the options and reads the file.
func (o Options) Complete() (s Completed, err error) {
	s.Options = o
	for _, d := range []**time.Duration{&s.NotReady, &s.Unreachable} {
		if *d == nil {
			*d = new(defaultNotReadyTime)
		}
	}
	s.config, err = configfile.Read(o.ConfigFile)
	return s, err
}

// Validate checks the options and the file they name. Its errors name the flags.
func (o Options) Validate() error {
	config, err := configfile.Read(o.ConfigFile)
	if err != nil {
		return fmt.Errorf("--admission-control-config-file: %w", err)
	}
	security, err := config.PodSecurity()
	if err != nil {
		return fmt.Errorf("--admission-control-config-file %s: %w", o.ConfigFile, err)
	}
	return setDefaultLevel(security, o.DefaultPodSecurity, config.Has(configfile.PodSecurityPlugin))
}

// policies are the plug-ins of admission that go by classes, labels and image policies.
type policies struct {
	priorities     *priorities
	runtimeClasses runtimeClasses
	podSecurity    podSecurity
	images         *images.Plugin
	secrets        mountableSecrets
}

// newPolicies makes them. What is wrong with their configuration is an error for the user.
func newPolicies(st registry.Stores, types *schemes.Schemes, config configfile.Config, defaultLevel string,
	locate connect.NodeLocator, authz func() authorizer.UnconditionalAuthorizer) (*policies, error) {
	security, err := config.PodSecurity()
	if err != nil {
		return nil, err
	}
	if err := setDefaultLevel(security, defaultLevel, config.Has(configfile.PodSecurityPlugin)); err != nil {
		return nil, err
	}
	fixed, err := config.ImagePolicies()
	if err != nil {
		return nil, err
	}
	p := &policies{
		priorities:     newPriorities(st, authz),
		runtimeClasses: runtimeClasses{st["runtimeclasses"]},
		images:         images.New(st, fixed, locate), secrets: newMountableSecrets(st),
	}
	p.podSecurity, err = newPodSecurity(securityReads{st, defaultLevel != ""}, types, security)
	return p, err
}
