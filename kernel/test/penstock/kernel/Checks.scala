package penstock.kernel

import java.util.Random

/** Named checks with fixed seeds: a line for each, a closing line `N passed, N failed`, exit code 1 where one failed.
  *
  * With `-Dpenstock.soak=true` seeded checks run with many more seeds. With arguments only checks whose names contain one of them run.
  */
final class Checks(only: Array[String]) {
  private var passed = 0
  private var failed = 0

  def check(name: String)(body: => Unit): Unit = if (only.isEmpty || only.exists(part => name.contains(part))) {
    val start = System.nanoTime
    try {
      body
      passed += 1
      println(f"ok    $name (${(System.nanoTime - start) / 1e6}%.0f ms)")
    } catch {
      case error: Throwable =>
        failed += 1
        println(s"FAIL  $name")
        error.printStackTrace(System.out)
    }
  }

  /** Runs `body` with a random source for each of `seeds` seeds; a failure names its seed. */
  def seeded(name: String, seeds: Int)(body: Random => Unit): Unit = check(name) {
    val all = if (java.lang.Boolean.getBoolean("penstock.soak")) 20 * seeds else seeds
    (1 to all).foreach { seed =>
      try body(new Random(seed))
      catch { case error: Throwable => throw new AssertionError(s"seed $seed: $error", error) }
    }
  }

  def close(): Unit = {
    println(s"$passed passed, $failed failed")
    System.out.flush()
    if (failed > 0) sys.exit(1)
  }
}

object Checks {
  def equal(found: Any, wanted: Any, what: => String): Unit =
    if (found != wanted) throw new AssertionError(s"$what: found $found, wanted $wanted")

  def holds(condition: Boolean, what: => String): Unit = if (!condition) throw new AssertionError(what)
}
