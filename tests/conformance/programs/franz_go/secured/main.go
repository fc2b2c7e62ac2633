// Command secured produces to a topic, or consumes it in a group, as a user of SASL/PLAIN or as nobody:
// secured produce|consume OPTION=VALUE...
//
// It says on standard output what the application sees, one line each, and ends after the records or the first error:
// "throttled" with the milliseconds and whether they began after the response, "error" with Kafka's name, or "done".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
)

type throttling struct{}

func (throttling) OnBrokerThrottle(_ kgo.BrokerMetadata, interval time.Duration, after bool) {
	fmt.Printf("throttled\t%d\t%t\n", interval.Milliseconds(), after)
}

func main() {
	options := map[string]string{"bytes": "1", "records": "1", "group": ""}
	for _, argument := range os.Args[2:] {
		name, value, _ := strings.Cut(argument, "=")
		options[name] = value
	}
	settings := []kgo.Opt{
		kgo.SeedBrokers(options["bootstrap.servers"]),
		kgo.WithHooks(throttling{}),
		kgo.ProducerBatchMaxBytes(100_000),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.DefaultProduceTopic(options["topic"]),
	}
	if user := options["user"]; user != "" {
		auth := plain.Auth{User: user, Pass: options["password"]}
		settings = append(settings, kgo.SASL(auth.AsMechanism()))
	}
	if os.Args[1] == "consume" {
		settings = append(settings, kgo.ConsumeTopics(options["topic"]), kgo.ConsumerGroup(options["group"]))
		settings = append(settings, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		say(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if os.Args[1] == "consume" {
		say(client.PollFetches(ctx).Err())
	} else {
		say(produce(ctx, client, number(options["records"]), number(options["bytes"])))
	}
	client.CloseAllowingRebalance()
}

func produce(ctx context.Context, client *kgo.Client, records, bytes int) error {
	for range records {
		if err := client.ProduceSync(ctx, kgo.SliceRecord(make([]byte, bytes))).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func say(err error) {
	var known *kerr.Error
	switch {
	case err == nil:
		fmt.Println("done")
	case errors.As(err, &known):
		fmt.Printf("error\t%s\n", known.Message)
	default:
		fmt.Printf("error\t%s\n", err)
	}
}
