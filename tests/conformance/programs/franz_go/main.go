// Command member is franz-go's consumer as a member of a test's group: member TOPIC OPTION=VALUE...
//
// The options have Kafka's names. It says on standard output what it is told and what it reads, one line each
// (see members.py), commits after every poll, and leaves when its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]kgo.GroupBalancer{
	"range":              kgo.RangeBalancer(),
	"roundrobin":         kgo.RoundRobinBalancer(),
	"sticky":             kgo.StickyBalancer(),
	"cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

var output sync.Mutex

func say(what, about string) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf("%s\t%s\n", what, about)
}

func tell(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		var numbers []int
		for _, of := range partitions {
			for _, number := range of {
				numbers = append(numbers, int(number))
			}
		}
		sort.Ints(numbers)
		words := make([]string, len(numbers))
		for i, number := range numbers {
			words[i] = strconv.Itoa(number)
		}
		say(what, strings.Join(words, " "))
	}
}

func milliseconds(options map[string]string, name string) time.Duration {
	number, err := strconv.Atoi(options[name])
	if err != nil {
		fail(fmt.Errorf("%s: %w", name, err))
	}
	return time.Duration(number) * time.Millisecond
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// classic is what a member of the classic protocol says itself; brokers tell members of the newer one.
func classic(options map[string]string) []kgo.Opt {
	var chosen []kgo.GroupBalancer
	for _, name := range strings.Split(options["partition.assignment.strategy"], ",") {
		balancer, known := balancers[name]
		if !known {
			fail(fmt.Errorf("partition.assignment.strategy: %q is not known", name))
		}
		chosen = append(chosen, balancer)
	}
	return []kgo.Opt{
		kgo.Balancers(chosen...),
		kgo.SessionTimeout(milliseconds(options, "session.timeout.ms")),
		kgo.HeartbeatInterval(milliseconds(options, "heartbeat.interval.ms")),
	}
}

func main() {
	options := make(map[string]string)
	for _, argument := range os.Args[2:] {
		name, value, _ := strings.Cut(argument, "=")
		options[name] = value
	}
	settings := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(options["bootstrap.servers"], ",")...),
		kgo.ConsumerGroup(options["group.id"]),
		kgo.ConsumeTopics(os.Args[1]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.OnPartitionsAssigned(tell("assigned")),
		kgo.OnPartitionsRevoked(tell("revoked")),
		kgo.OnPartitionsLost(tell("lost")),
	}
	if options["group.protocol"] == "consumer" {
		settings = append(settings, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
	} else {
		settings = append(settings, classic(options)...)
	}
	if instance, isStatic := options["group.instance.id"]; isStatic {
		settings = append(settings, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		fail(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	consume(ctx, client)
	client.Close() // leaves, unless the member is static
}

func consume(ctx context.Context, client *kgo.Client) {
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachRecord(func(record *kgo.Record) {
			say("record", fmt.Sprintf("%d\t%d\t%s", record.Partition, record.Offset, record.Value))
		})
		if fetches.NumRecords() > 0 {
			if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
				say("refused", err.Error())
			}
		}
	}
}
