package penstock.kernel.avro

/** A value does not fit its column: the type that it should have, and where it lies inside the field. */
final class Misfit(val wanted: String, val path: String) extends RuntimeException(wanted, null, false, false) {
  def under(outer: String): Misfit = new Misfit(wanted, outer + path)

  def reason: String = s"it is not ${if ("AEIOU".contains(wanted.head)) "an" else "a"} $wanted"
}
